package tcpstate

import "time"

// Ideal returns the most payload per second of a link: its rate times the payload's share of a packet (RFC 6349
// section 4.1). mss is the payload of a full segment; overhead the headers of TCP and IP with their options, and what
// the link adds, if rate includes that: 38 bytes for the bits of Ethernet.
func Ideal(rate, mss, overhead float64) (float64, bool) {
	return known(rate*mss/(mss+overhead), rate > 0 && mss > 0 && overhead >= 0)
}

// TransferTimeRatio returns the time of a transfer over that at the ideal rate (RFC 6349 section 4.1), at least 1 if the
// link has no more than that rate. For transfers of a fixed time it is the ideal rate over the throughput.
func TransferTimeRatio(ideal, throughput float64) (float64, bool) {
	return known(ideal/throughput, ideal > 0 && throughput > 0)
}

// Retransmitted returns the share of sent bytes that were sent again. The rest is TCP efficiency (RFC 6349 section
// 4.2).
func Retransmitted(sent, again int64) (float64, bool) {
	return known(float64(again)/float64(sent), sent > 0 && again >= 0 && again <= sent)
}

// BufferDelay returns the growth of the RTT over its baseline, as a share of that (RFC 6349 section 4.3). The RFC
// measures the baseline before the transfer.
func BufferDelay(mean, baseline time.Duration) (float64, bool) {
	return known(float64(mean-baseline)/float64(baseline), baseline > 0 && mean > 0)
}
