// Package saturate is the probe that fills a link with UDP packets on purpose, and so
// learns its rate, its loss and its queue (Woo 2010 chapter 6, Halepovic 2008 figure 2,
// RFC 9097).
//
// There are three modes. "fixed" offers one rate that is more than the link carries: what
// comes through is its rate, and how much longer packets take than just before, when the
// link was idle, is its queue (package estimate/queue). "sweep" offers one rate after the
// other, from low to high, and finds where loss begins. "search" lets the load adjustment
// of RFC 9097 look for the highest rate that the link carries.
//
// All rates and sizes are those of IP packets, headers included and no link layer.
package saturate
