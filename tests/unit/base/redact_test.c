/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/redact.h"

#define R    REDACTED
#define ARGS 6

/* Copies the input to the heap, where a sanitizer sees a read beyond its end. */
static size_t redact_copy(const char *text, size_t length, bool is_cut, char *to, size_t size)
{
	char *copy = malloc(length + !length);
	size_t written;

	assert_non_null(copy);
	memcpy(copy, text, length);
	written = redact_arguments(copy, length, is_cut, to, size);
	assert_int_equal(written, strlen(to));
	assert_true(written < size);
	free(copy);
	return written;
}

struct command {
	const char *arguments[ARGS];
	const char *expected;
};

static void expect_command(const struct command *command, bool is_cut)
{
	char text[1024], shown[4096];
	size_t length = 0;

	for (int i = 0; i < ARGS && command->arguments[i]; i++) {
		memcpy(text + length, command->arguments[i], strlen(command->arguments[i]) + 1);
		length += strlen(command->arguments[i]) + 1;
	}
	redact_copy(text, length - is_cut, is_cut, shown, sizeof(shown));
	assert_string_equal(shown, command->expected);
}

static void expect_commands(const struct command *commands, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_command(&commands[i], false);
}

#define EXPECT(...)                                                                                \
	do {                                                                                       \
		static const struct command commands[] = {__VA_ARGS__};                            \
		expect_commands(commands, sizeof(commands) / sizeof(commands[0]));                 \
	} while (0)

static void the_value_of_a_secret_option_is_replaced(void **state)
{
	EXPECT({{"llama-server", "--api-key", "sk-1", "-m", "x.gguf"},
		"llama-server --api-key " R " -m x.gguf"},
	       {{"a", "--api-key=sk-1", "-v"}, "a --api-key=" R " -v"},
	       {{"a", "-api_key", "sk-1"}, "a -api_key " R},
	       {{"a", "--API-Key", "sk-1"}, "a --API-Key " R},
	       {{"a", "--hf-token", "hf_x"}, "a --hf-token " R},
	       {{"a", "--token", "-aB3x"}, "a --token " R},
	       {{"a", "--password=my pass phrase", "-v"}, "a --password=" R " -v"},
	       {{"a", "--api-key", "my pass phrase", "-v"}, "a --api-key " R " -v"},
	       {{"a", "--env=DB_PASSWD=my pass"}, "a --env=DB_PASSWD=" R},
	       {{"a", "--client-secret", "s", "--credential", "c", "-x"},
		"a --client-secret " R " --credential " R " -x"});
}

static void an_option_may_have_several_secrets(void **state)
{
	EXPECT({{"vllm", "serve", "--api-key", "k1", "k2", "--port"},
		"vllm serve --api-key " R " " R " --port"},
	       {{"sh", "-c", "vllm serve --api-key k1 k2 --port 80"},
		"sh -c vllm serve --api-key " R " " R " --port 80"});
}

static void what_is_no_secret_stays(void **state)
{
	EXPECT({{"a", "--max-num-batched-tokens", "many"}, "a --max-num-batched-tokens many"},
	       {{"a", "--tokenizer", "name"}, "a --tokenizer name"},
	       {{"a", "--num-key-value-heads", "x"}, "a --num-key-value-heads x"},
	       {{"a", "--api-key-file", "/etc/key"}, "a --api-key-file /etc/key"},
	       {{"a", "--api-keys", "x"}, "a --api-keys x"},
	       {{"a", "--monkey", "x", "monkey=x"}, "a --monkey x monkey=x"},
	       {{"a", "key", "token", "value"}, "a key token value"},
	       {{"", "", "a", "  b  "}, "  a   b  "});
}

static void a_number_stays(void **state)
{
	EXPECT({{"a", "--eos-token", "2", "model"}, "a --eos-token 2 model"},
	       {{"a", "--key=-1.5e3", "KEY=+7"}, "a --key=-1.5e3 KEY=+7"},
	       {{"a", "{\"max_key\": 5, \"x\": 1}"}, "a {\"max_key\": 5, \"x\": 1}"},
	       {{"a", "--key=12ab", "--key=1.", "--key=.", "--key=0x1f"},
		"a --key=" R " --key=1. --key=" R " --key=" R});
}

static void an_option_without_a_value_takes_none(void **state)
{
	EXPECT({{"a", "--no-auth-token", "--foo", "bar"}, "a --no-auth-token --foo bar"},
	       {{"a", "--no-auth-token", "-ngl", "99"}, "a --no-auth-token -ngl 99"},
	       {{"a", "--token", "--", "b"}, "a --token -- b"}, {{"a", "--api-key"}, "a --api-key"},
	       {{"a", "--api-key", "", "b"}, "a --api-key  b"},
	       {{"a", "--api-key=", "b"}, "a --api-key= b"},
	       {{"a", "--token", "--api-key", "s"}, "a --token --api-key " R});
}

static void variables_and_headers_are_redacted(void **state)
{
	EXPECT({{"env", "HF_TOKEN=hf_x", "a"}, "env HF_TOKEN=" R " a"},
	       {{"docker", "-e", "AWS_SECRET_ACCESS_KEY=a/b+c="},
		"docker -e AWS_SECRET_ACCESS_KEY=" R},
	       {{"curl", "-H", "Authorization: Bearer x y", "u"}, "curl -H Authorization: " R " u"},
	       {{"sh", "-c", "a Authorization: Bearer x y"}, "sh -c a Authorization: " R},
	       {{"curl", "--header=x-api-key:abc"}, "curl --header=x-api-key:" R},
	       {{"curl", "http://h/?api_key=abc&x=1"}, "curl http://h/?api_key=" R});
}

static void a_command_in_an_argument_is_redacted(void **state)
{
	EXPECT({{"sh", "-c", "A=1 HF_TOKEN=x exec a --api-key 'my sk' -m m"},
		"sh -c A=1 HF_TOKEN=" R " exec a --api-key " R " -m m"},
	       {{"sh", "-c", "a --key=x\"y z\"w b"}, "sh -c a --key=" R " b"},
	       {{"sh", "-c", "curl -H 'Authorization: Bearer x' http://h"},
		"sh -c curl -H 'Authorization: " R "' http://h"},
	       {{"sh", "-c", "a 'KEY=b c'\"d e\" f"}, "sh -c a 'KEY=" R " f"},
	       {{"sh", "-c", "a '--api-key' 'b c' -d"}, "sh -c a '--api-key' " R " -d"},
	       {{"python", "-c", "token = \"x\""}, "python -c token = " R});
}

static void json_in_an_argument_is_redacted(void **state)
{
	EXPECT({{"a", "{\"api_key\":\"x y\",\"b\":\"c\"}"}, "a {\"api_key\":" R ",\"b\":\"c\"}"},
	       {{"a", "{\"token\": [\"x y\", \"z\"]}"}, "a {\"token\": " R},
	       {{"a", "{\\\"key\\\": \\\"x y\\\"}"}, "a {\\\"key\\\": " R},
	       {{"a", "[\"--api-key\", \"x\", \"b\"]"}, "a [\"--api-key\", " R " " R});
}

static void the_password_of_a_url_is_replaced(void **state)
{
	EXPECT({{"a", "https://user:pw@host:80/p"}, "a https://user:" R "@host:80/p"},
	       {{"a", "--db=redis://:123@h"}, "a --db=redis://:" R "@h"},
	       {{"a", "x://u:p@w@h/p", "x://u:p/w@h"}, "a x://u:" R "@h/p x://u:" R "@h"},
	       {{"a", "x://u:p@h,y://v:q@i"}, "a x://u:" R "@h,y://v:" R "@i"},
	       {{"a", "http://h:80/@x", "http://u@h:80/a", "http://u:@h", "http://[::1]:80/"},
		"a http://h:80/@x http://u@h:80/a http://u:@h http://[::1]:80/"});
}

static void a_value_that_is_cut_off_is_replaced(void **state)
{
	static const struct command commands[] = {
		{{"a", "--api-key", "123"}, "a --api-key " R},
		{{"a", "--api-key=12"}, "a --api-key=" R},
		{{"a", "sh -c 'x API_KEY=\"1"}, "a sh -c 'x API_KEY=" R},
		{{"a", "https://user:12"}, "a https://user:" R},
		{{"a", "--num", "12"}, "a --num 12"},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		expect_command(&commands[i], true);
}

static void a_full_buffer_cuts_the_result_off(void **state)
{
	char shown[16];

	assert_int_equal(redact_copy("a\0--key\0secret\0b", 17, false, shown, sizeof(shown)), 15);
	assert_string_equal(shown, "a --key [redact");
	assert_int_equal(redact_copy("abc\0d", 5, false, shown, 4), 3);
	assert_string_equal(shown, "abc");
	assert_int_equal(redact_copy("a", 1, false, shown, 1), 0);
}

static void a_redacted_text_stays_as_it_is(void **state)
{
	EXPECT({{"a", "--api-key", R, "-b"}, "a --api-key " R " -b"},
	       {{"a", "KEY=" R, "x://u:" R "@h"}, "a KEY=" R " x://u:" R "@h"});
}

static void a_text_keeps_its_length_beyond_a_nul(void **state)
{
	struct redactor redactor = {false};
	size_t length = 11;
	char *text = redact_text(&redactor, "a\0b KEY=x\0c", &length);

	assert_non_null(text);
	assert_int_equal(length, 20);
	assert_memory_equal(text, "a\0b KEY=" R "\0c", 20);
	free(text);
}

/* A secret that resembles no other part of the text, after everything that may precede it. */
static void a_secret_never_passes(void **state)
{
	static const char *const before[] = {"--api-key\0", "--api-key=",      "-api_key\0",
					     "HF_TOKEN=",   "Authorization: ", "\"api_key\": \"",
					     "x://u:",	    "--x=A_PASSWORD="};
	static const char pieces[] = " \t\"'\\=:-_/@?#,;{}[]$&\0\n\xff"
				     "1a";
	char text[256], shown[4096];

	srand(1);
	for (int i = 0; i < 200000; i++) {
		const char *name = before[rand() % 8];
		size_t named = strlen(name), length = (size_t)(rand() % 24);

		for (size_t j = 0; j < length; j++)
			text[j] = pieces[(size_t)rand() % (sizeof(pieces) - 1)];
		/* The name begins an argument, a word or a quoted text. */
		text[length++] = " \0\"'"[rand() % 4];
		memcpy(text + length, name, named);
		length += named;
		if (name[0] == '-' && !strchr(name, '='))
			text[length++] = rand() % 2 ? '\0' : ' ';
		memcpy(text + length, "sEcReT7", 7);
		length += 7;
		if (*name == 'x')
			memcpy(text + length++, "@", 1);
		for (size_t j = (size_t)(rand() % 24); j; j--)
			text[length++] = pieces[(size_t)rand() % (sizeof(pieces) - 1)];
		redact_copy(text, length, rand() % 2, shown, sizeof(shown));
		if (strstr(shown, "sEcReT7"))
			fail_msg("'%s' of case %d", shown, i);
	}
}

static void any_bytes_are_survived(void **state)
{
	static const char *const words[] = {"--",   "key", "token", "=",  ":",	      " ", "\"",
					    "'",    "://", "@",	    "\\", "1",	      "a", ",",
					    "\xe2", "[",   "}",	    "e",  "--api-key"};
	char text[512], shown[1024];

	srand(2);
	for (int i = 0; i < 200000; i++) {
		size_t length = 0;

		while (length < sizeof(text) - 16 && rand() % 24) {
			const char *word = words[(size_t)rand() % (sizeof(words) / sizeof(*words))];
			size_t size = strlen(word) + !(rand() % 8);

			memcpy(text + length, word, size);
			length += size;
		}
		redact_copy(text, length, rand() % 2, shown,
			    1 + (size_t)rand() % (sizeof(shown) - 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_of_a_secret_option_is_replaced),
		cmocka_unit_test(an_option_may_have_several_secrets),
		cmocka_unit_test(what_is_no_secret_stays),
		cmocka_unit_test(a_number_stays),
		cmocka_unit_test(an_option_without_a_value_takes_none),
		cmocka_unit_test(variables_and_headers_are_redacted),
		cmocka_unit_test(a_command_in_an_argument_is_redacted),
		cmocka_unit_test(json_in_an_argument_is_redacted),
		cmocka_unit_test(the_password_of_a_url_is_replaced),
		cmocka_unit_test(a_value_that_is_cut_off_is_replaced),
		cmocka_unit_test(a_full_buffer_cuts_the_result_off),
		cmocka_unit_test(a_redacted_text_stays_as_it_is),
		cmocka_unit_test(a_text_keeps_its_length_beyond_a_nul),
		cmocka_unit_test(a_secret_never_passes),
		cmocka_unit_test(any_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
