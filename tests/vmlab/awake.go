package vmlab

import "os"

// latencyFile is the kernel's PM QoS interface
// (Documentation/power/pm_qos_interface.rst): the request stands while it is open.
const latencyFile = "/dev/cpu_dma_latency"

// keepAwake asks the host's kernel not to put idle processors to sleep: to wake one
// that a hypervisor has taken away costs more than all else that a packet meets between
// two guests. nil where that cannot be asked for; the lab is coarser there.
func keepAwake() *os.File {
	f, err := os.OpenFile(latencyFile, os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	if _, err := f.Write([]byte{0, 0, 0, 0}); err != nil { // microseconds, 32 bits
		_ = f.Close()
		return nil
	}
	return f
}
