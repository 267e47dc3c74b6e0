package tcptraffic

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/net/tcpsocket"
)

// DescribeCongestionControl describes the option of a load test for the congestion control of all its flows.
func DescribeCongestionControl(name *string) option.Description {
	return option.Text(name, "Congestion control algorithm of the sending host's kernel.").Unset("the host's default").WithExample("cubic").WithPlaceholder("NAME").
		Checked(func(key string) error { return CheckName(key, *name) })
}

// DescribeBuffer describes the option of a load test for a socket buffer. which is "Send" or "Receive".
func DescribeBuffer(size *option.Bytes, which string) option.Description {
	return option.Number(size, 0, 0, tcpsocket.MaxBuffer, which+" buffer, as an application sets it: the kernel doubles it.").Unset("auto-tuning")
}

// DescribeIdle describes the option of a load test for the time after which what, such as a run, ends without progress. TCP sends again
// after ever longer times (RFC 6298 section 5.5).
func DescribeIdle(timeout *time.Duration, what string) option.Description {
	return option.Number(timeout, 10*time.Second, MinIdle, MaxIdle,
		"Time without progress after which a "+what+" ends: more than twice as long as an outage that it should survive, as TCP sends again after ever longer times.")
}

// CheckOmit reports an omit of more than half of the option key, which is lasts: by that key if omit has its default.
func CheckOmit(omit, unset time.Duration, key string, lasts time.Duration) error {
	if omit == unset && omit > lasts/2 {
		return option.Errorf(key, "is %v; with an %s of %v it must be at least %v", lasts, option.Key("omit"), omit, 2*omit)
	}
	return option.Between("omit", omit, 0, lasts/2)
}

// Limits of the IP bytes of a direction, or of a measurement.
const (
	minLimit = 100_000
	// MaxBytes is the largest limit.
	MaxBytes = 1 << 45
)

// DescribeLimit describes the option of a load test for the limit of IP bytes of what, such as a direction.
func DescribeLimit(limit *option.Bytes, standard option.Bytes, what string) option.Description {
	return option.Number(limit, standard, minLimit, MaxBytes, "Limit of IP bytes of "+what+", acknowledgments and retransmissions included; sending then ends.")
}

// CheckNames is CheckName for each name of a list.
func CheckNames(key string, names []string) error {
	for i, name := range names {
		if err := CheckName(fmt.Sprintf("%s[%d]", key, i), name); err != nil {
			return err
		}
	}
	return nil
}
