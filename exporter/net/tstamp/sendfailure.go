package tstamp

import "syscall"

// otherFailure is the reason of a failed send with an errno that sendReasons does not contain.
const otherFailure = "other"

// sendReasons are the reasons of failed sends by errno: values of the metric label `reason`.
func sendReasons() map[syscall.Errno]string {
	return map[syscall.Errno]string{
		syscall.EPERM:         "not_permitted",
		syscall.EACCES:        "permission_denied",
		syscall.ECONNREFUSED:  "port_unreachable",
		syscall.EHOSTUNREACH:  "host_unreachable",
		syscall.ENETUNREACH:   "network_unreachable",
		syscall.ENETDOWN:      "network_down",
		syscall.EADDRNOTAVAIL: "address_not_available",
		syscall.ENODEV:        "no_such_device",
		syscall.EMSGSIZE:      "packet_too_large",
		syscall.EAGAIN:        "send_buffer_full",
		syscall.ENOBUFS:       "interface_queue_full",
		syscall.ENOMEM:        "out_of_memory",
		syscall.EINVAL:        "invalid_argument",
		syscall.ESHUTDOWN:     "socket_closed",
	}
}

// CountByReason adds up the numbers of failed sends by reason.
func CountByReason(byErrno map[syscall.Errno]uint64) map[string]uint64 {
	reasons, counts := sendReasons(), map[string]uint64{}
	for errno, n := range byErrno {
		reason, found := reasons[errno]
		if !found {
			reason = otherFailure
		}
		counts[reason] += n
	}
	return counts
}
