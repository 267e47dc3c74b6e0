/*
 * Checks what a guest's kernel needs of timer_gettime, with or without wake.c loaded before the C
 * library: an alarm if it finds no armed timer for long, none before that, and none while a timer is
 * armed. Exit status 0: all hold; 1: the failed check was printed.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { few = 50, many = 150 };

static volatile sig_atomic_t alarms;

static void count(int number)
{
	(void)number;
	alarms++;
}

static void want(int expected, const char *what)
{
	if (alarms == expected)
		return;
	printf("%s: no, %d alarms; want %d\n", what, (int)alarms, expected);
	exit(1);
}

static void look(timer_t timer, int times)
{
	struct itimerspec left;

	while (times-- > 0)
		if (timer_gettime(timer, &left) != 0) {
			perror("timer_gettime");
			exit(1);
		}
}

int main(void)
{
	struct itimerspec hour = { .it_value.tv_sec = 3600 }, never = { 0 };
	timer_t timer;

	if (signal(SIGALRM, count) == SIG_ERR || timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0) {
		perror("timer_create");
		return 1;
	}
	look(timer, few);
	want(0, "a timer that has just ended is waited for");
	timer_settime(timer, 0, &hour, NULL);
	look(timer, many);
	want(0, "an armed timer is waited for");
	timer_settime(timer, 0, &never, NULL);
	look(timer, many);
	want(1, "a lost alarm is replaced");
	return 0;
}
