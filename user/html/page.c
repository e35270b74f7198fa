/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "html/page.h"

#include <errno.h>
#include <openssl/evp.h>

#include "base/version.h"
#include "html_page.h"

#define DIGEST_BYTES 32

/* "sha256-…" as Content-Security-Policy names a script or style (CSP level 3, hash-source). */
struct source {
	char text[64];
};

static int source_of(struct source *source, const unsigned char *text, size_t size)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned char encoded[(DIGEST_BYTES + 2) / 3 * 4 + 1];

	if (!EVP_Digest(text, size, digest, NULL, EVP_sha256(), NULL))
		return -ENOMEM;
	EVP_EncodeBlock(encoded, digest, DIGEST_BYTES);
	snprintf(source->text, sizeof(source->text), "sha256-%s", (const char *)encoded);
	return 0;
}

static void write_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void write_data(FILE *out, const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '<')
			fputs("\\u003c", out);
		else
			putc_unlocked(data[i], out);
	}
}

int page_write(FILE *out, const char *title, const struct page_script *with, const char *data,
	       size_t size)
{
	struct source script, style;
	int err = source_of(&script, with->text, with->size);

	if (!err)
		err = source_of(&style, page_css, sizeof(page_css));
	if (err)
		return err;
	fprintf(out,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"generator\" content=\"ferrum-bpftrace %s\">\n<title>",
		script.text, style.text, tool_version());
	write_escaped(out, title);
	fputs("</title>\n<style>", out);
	fwrite(page_css, 1, sizeof(page_css), out);
	fputs("</style>\n</head>\n<body>\n<main id=\"page\"><noscript>This report draws its charts "
	      "with a script, which this browser does not run.</noscript></main>\n"
	      "<script type=\"application/json\" id=\"data\">",
	      out);
	write_data(out, data, size);
	fputs("</script>\n<script>", out);
	fwrite(with->text, 1, with->size, out);
	fputs("</script>\n</body>\n</html>\n", out);
	return 0;
}

struct page_script page_report_script(void)
{
	return (struct page_script){page_js, sizeof(page_js)};
}
