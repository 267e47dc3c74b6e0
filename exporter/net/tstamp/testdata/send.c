/*
 * The smallest sender with the kernel's transmit timestamps, which BenchmarkStampedSending
 * compares with: send PORT PACKETS sends packets of 64 bytes to 127.0.0.1, 64 a call, and reads
 * the timestamp of each from the error queue. It prints the CPU time that this took, in nanoseconds,
 * and the number of timestamps.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { BATCH = 64 };

static long long cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

int main(int argc, char **argv)
{
	static struct mmsghdr out[BATCH], in[BATCH];
	static struct iovec vectors[BATCH];
	static char payload[64], control[BATCH][256];
	struct sockaddr_in to = { .sin_family = AF_INET };
	int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
		SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
	long packets, stamps = 0;
	long long begin;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc != 3 || fd < 0 || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags)) {
		perror("send PORT PACKETS");
		return 1;
	}
	to.sin_port = htons(atoi(argv[1]));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	packets = atol(argv[2]);
	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){ payload, sizeof payload };
		out[i].msg_hdr = (struct msghdr){ .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &vectors[i], .msg_iovlen = 1 };
		in[i].msg_hdr.msg_control = control[i];
	}
	begin = cpu();
	for (long sent = 0; sent < packets;) {
		int n = sendmmsg(fd, out, BATCH, 0);

		if (n < 0) {
			perror("sendmmsg");
			return 1;
		}
		sent += n;
		while (n > 0) {
			for (int i = 0; i < BATCH; i++)
				in[i].msg_hdr.msg_controllen = sizeof control[i];
			int got = recvmmsg(fd, in, BATCH, MSG_ERRQUEUE | MSG_DONTWAIT, NULL);

			if (got < 0 && errno != EAGAIN) {
				perror("recvmmsg");
				return 1;
			}
			for (int i = 0; i < got; i++)
				for (struct cmsghdr *c = CMSG_FIRSTHDR(&in[i].msg_hdr); c; c = CMSG_NXTHDR(&in[i].msg_hdr, c))
					if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING)
						stamps += ((struct scm_timestamping *)CMSG_DATA(c))->ts[0].tv_sec != 0;
			if (got > 0)
				n -= got;
		}
	}
	printf("%lld %ld\n", cpu() - begin, stamps);
	return 0;
}
