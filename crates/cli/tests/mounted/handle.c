/* Names a file by its handle, and opens what a handle names: `handle of PATH`, `handle cat MOUNT HANDLE`. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(void)
{
	fprintf(stderr, "%s\n", strerror(errno));
	return 1;
}

int main(int count, char **words)
{
	struct file_handle *handle = calloc(1, sizeof *handle + MAX_HANDLE_SZ);
	int mount, file, used;
	unsigned byte;
	char piece[4096];
	ssize_t size;

	if (count == 3) {
		handle->handle_bytes = MAX_HANDLE_SZ;
		if (name_to_handle_at(AT_FDCWD, words[2], handle, &mount, 0) < 0)
			return fail();
		printf("%d:", handle->handle_type);
		for (byte = 0; byte < handle->handle_bytes; byte++)
			printf("%02x", handle->f_handle[byte]);
		return 0;
	}
	sscanf(words[3], "%d:%n", &handle->handle_type, &used);
	for (words[3] += used; sscanf(words[3], "%2x", &byte) == 1; words[3] += 2)
		handle->f_handle[handle->handle_bytes++] = byte;
	if ((mount = open(words[2], O_RDONLY)) < 0)
		return fail();
	if ((file = open_by_handle_at(mount, handle, O_RDONLY)) < 0)
		return fail();
	while ((size = read(file, piece, sizeof piece)) > 0)
		fwrite(piece, 1, size, stdout);
	return size < 0 ? fail() : 0;
}
