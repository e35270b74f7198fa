/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sink_room.h"

#include <stdlib.h>

struct room_sink {
	struct sink sink;
	void (*look)(void *ctx);
	void (*settle)(void *ctx);
	void *ctx;
	size_t items; /* since the last look */
};

static int count(struct sink *sink, size_t items)
{
	struct room_sink *room = (struct room_sink *)sink;

	room->items += items;
	if (room->items >= SINK_ROOM_ITEMS) {
		room->items = 0;
		room->look(room->ctx);
	}
	return 0;
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	return count(sink, 1);
}

static int write_calls(struct sink *sink, const struct window *window, const struct step *step)
{
	return count(sink, step->calls.count);
}

static int write_call(struct sink *sink, const struct window *window, const struct fbt_call *call)
{
	return count(sink, 1);
}

static int write_gpu(struct sink *sink, const struct window *window, const struct gpu_batch *batch)
{
	return count(sink, batch->works->count + batch->apis->count);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct room_sink *room = (struct room_sink *)sink;

	room->settle(room->ctx);
	return 0;
}

static void free_room(struct sink *sink)
{
	free(sink);
}

struct sink *sink_room__new(void (*look)(void *ctx), void (*settle)(void *ctx), void *ctx)
{
	struct room_sink *room = calloc(1, sizeof(*room));

	if (!room)
		return NULL;
	room->sink = (struct sink){
		.name = "room",
		.write_step = write_step,
		.write_calls = write_calls,
		.write_call = write_call,
		.write_gpu = write_gpu,
		.finish = finish,
		.free = free_room,
	};
	room->look = look;
	room->settle = settle;
	room->ctx = ctx;
	return &room->sink;
}
