//go:build !amd64

package truth

// Counter is 0: there is none.
func Counter() uint64 { return 0 }

// Supported tells that this processor has a counter that guests read, too.
const Supported = false
