/*
 * Checks what a guest's kernel needs of ptrace, with or without wake.c loaded before the C library:
 * a part of the floating-point state can be set, the rest is kept, and all other requests reach
 * the C library. Exit status 0: all hold; 1: the failed check was printed.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Intel SDM volume 1, 13.4: the area in the standard format. */
enum { xmm3 = 160 + 3 * 16, xstate_bv = 512, extended = 576, ymm = 576, with_avx = 832, sse = 1 << 1, avx = 1 << 2, opmask = 5 };

static uint8_t before[1 << 16], after[1 << 16], part[with_avx];
static volatile long minus_one = -1, word = 4711;

static void want(int holds, const char *what)
{
	if (holds)
		return;
	printf("%s: no (errno %d: %s)\n", what, errno, strerror(errno));
	exit(1);
}

static uint64_t sets(const uint8_t *area)
{
	uint64_t v;

	memcpy(&v, area + xstate_bv, sizeof v);
	return v;
}

static void set(uint8_t *area, uint64_t v)
{
	memcpy(area + xstate_bv, &v, sizeof v);
}

static size_t get(pid_t child, uint8_t *area, size_t length)
{
	struct iovec v = { area, length };

	want(ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &v) == 0, "the state can be read");
	return v.iov_len;
}

static long put(pid_t child, uint8_t *area, size_t length)
{
	struct iovec v = { area, length };

	errno = 0;
	return ptrace(PTRACE_SETREGSET, child, NT_X86_XSTATE, &v);
}

/* Sets the opmask registers, which are beyond any part, if the processor has them. */
static void fill_beyond(pid_t child, size_t length, int pattern)
{
	unsigned size, offset, c, d;

	if (!__get_cpuid_count(0xd, opmask, &size, &offset, &c, &d) || size == 0 || offset + size > length)
		return;
	memset(before + offset, pattern, size);
	set(before, sets(before) | 1 << opmask);
	want(put(child, before, length) == 0, "the whole state can be set");
}

static void check_part(pid_t child, size_t length)
{
	size_t whole = get(child, before, sizeof before);
	uint64_t known = length == with_avx ? 7 : 3;

	if (whole <= length)
		return;
	fill_beyond(child, whole, length >> 6);
	get(child, before, whole);
	memcpy(part, before, length);
	memset(part + xmm3, length >> 6, 16);
	if (length == with_avx)
		memset(part + ymm, 0xb7, 256);
	set(part, known); /* and no bit of what is not in it */
	want(put(child, part, length) == 0, "a part of the state can be set");
	want(get(child, after, sizeof after) == whole, "the state is as long as before");
	want(memcmp(after + xmm3, part + xmm3, 16) == 0, "the part's SSE state is set");
	want(length < with_avx || memcmp(after + ymm, part + ymm, 256) == 0, "the part's AVX state is set");
	want(memcmp(after + length, before + length, whole - length) == 0, "the rest stays");
	want((sets(after) & ~known) == (sets(before) & ~known), "XSTATE_BV of the rest stays");
}

int main(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	want(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the child stops");
	errno = EINTR;
	want(ptrace(PTRACE_PEEKDATA, child, &word, 0) == 4711, "PEEKDATA returns the word");
	errno = EINTR;
	want(ptrace(PTRACE_PEEKDATA, child, &minus_one, 0) == -1 && errno == 0, "errno is 0 where the word is -1");
	want(ptrace(PTRACE_PEEKDATA, child, 0, 0) == -1 && errno == EIO, "errno is EIO where there is no word");
	check_part(child, extended);
	check_part(child, with_avx);
	want(put(getpid(), part, sizeof part) == -1 && errno == ESRCH, "errno is ESRCH of a process that is not traced");
	want(ptrace(PTRACE_CONT, child, 0, 0) == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "the child goes on and ends");
	return 0;
}
