package vmlab

import "os"

// latencyFile is the kernel's PM QoS interface
// (Documentation/power/pm_qos_interface.rst): the request stands while it is open.
const latencyFile = "/dev/cpu_dma_latency"

// keepAwake requests that the host's kernel keeps idle processors awake: the wake-up of one
// that a hypervisor has taken away takes longer than the rest of a packet's way between
// two guests. nil where that is not possible; the lab is less precise there.
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
