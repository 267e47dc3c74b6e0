// Package promsink is the metric.Sink that Prometheus scrapes.
//
// # What a scrape sees
//
// A scrape sees all of what an Update does or nothing of it, and still never
// makes a writer wait for it. Copying 400,000 series under a lock would stop
// every receiver for tenths of a second; instead each scrape has a number, and
// the first writer that touches a series while a scrape is going on first puts
// the value before it aside, once. The scrape takes what was put aside, or the
// live value where nobody wrote. The only time when writers wait is the instant
// in which the number changes.
//
// # Histograms
//
// Histograms are classic and native (schema 3: a bucket is 9 % wide). They are
// written anew because client_golang's keep each native bucket twice in a
// sync.Map: some 8 kB each where this one has about 1 kB, and a path has eleven.
// The results are compared with client_golang's in the tests.
//
// An observation may bring an exemplar; each classic bucket shows its last one, which
// OpenMetrics and the protocol buffers of Prometheus have and the plain text format has
// not. Without classic buckets they are the native histogram's. Histograms that never
// had one pay a nil pointer for it.
package promsink
