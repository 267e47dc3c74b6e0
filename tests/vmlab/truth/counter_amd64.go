package truth

// read is RDTSC.
func read() uint64

// Counter reads the processor's time stamp counter, which the host and all its
// guests share: nobody steps, slews or emulates it.
func Counter() uint64 { return read() }

// Supported tells that this processor has a counter that guests read, too.
const Supported = true
