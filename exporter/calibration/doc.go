// Package calibration knows how far the time stamps of an interface are off, and
// takes that out of delays: RFC 7679 section 3.7.3.
//
// The ends of a path are put back to back (package backtoback), so that the true
// delay is known. Each direction then has, of its measured minus its true delays,
//
//	systematic  their median
//	random      how far the 2.5th or the 97.5th percentile lies from it, whichever
//	            is farther: 95 % of the measurements are within so much
//	largest     how far any of them lies from it, but for what is known to have been
//	            held by its host after its stamp (decision 4), which has a bound of its own
//
// # What one host can honestly say
//
// A delay has two stamps and shows the sum of their errors only:
//
//	forward = true + offset + sent here + received there
//	reverse = true - offset + sent there + received here
//
// The offset of two clocks cancels in the mean of both directions, S; nothing
// divides S among the stamps. But a stamp of the kernel is never on the wire's side
// of the truth: sending is stamped before the packet leaves, receiving after it came
// (Linux Documentation/networking/timestamping.rst). So both errors lengthen a delay,
// and each lies between 0 and their sum. Half of S is taken for either stamp of the
// interface and removed from a delay; that the truth may be anything from none to all
// of it is part of the random error. Where the ends had clocks of their own the sum
// is not known by direction, and that part is three times as large.
//
// # What becomes of a bound
//
// A back-to-back run is a sample, in one hour and at one load; that nothing else
// happens later is not proven by it. So by default a calibration only widens: the
// interval Value +- Bound that comes out contains the one that went in, and what was
// proven of that one stays proven. The systematic error moves the value and widens the
// bound by as much; a random error above the one assumed widens it further; a smaller
// one changes nothing.
//
// Who prefers a narrower interval may say so (Trusted, `oneway calibrate --trust`).
// The bound is then the largest error seen, not the 95 % one, over TrustCount packets
// a direction at the least: with 95 % confidence 99.9 % of all packets are within it
// (Wilks 1941: 1-0.999^2995 > 0.95), as long as host, kernel, driver and load are
// those of the calibration. The first three are checked, the load cannot be.
//
// The far end's stamps keep the error that is assumed of them: its calibration is
// not known here.
package calibration
