// Package saturate is the probe that fills a link with UDP packets on purpose, and so
// learns its rate, its loss and its queue (Woo 2010 chapter 6, Halepovic 2008 figure 2,
// RFC 9097).
//
// There are three modes. "fixed" offers one rate that is more than the link carries: what
// comes through is its rate, and how much longer packets take than just before, when the
// link was idle, is its queue (package estimate/queue). "sweep" offers one rate after the
// other, from low to high, and finds where loss begins: each is a burst from an idle link,
// whose queue is empty and whose token bucket, if it has one, is full. "search" lets the load
// adjustment of RFC 9097 change the rate of one stream, without a pause, by what its receiver
// reports; what comes through in the parts of it that begin while the link is full is what
// the link sustains.
//
// All rates and sizes are those of IP packets, headers included and no link layer.
package saturate
