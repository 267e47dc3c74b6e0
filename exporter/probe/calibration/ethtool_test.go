package calibration

import (
	"testing"
	"time"
	"unsafe"
)

// The layout is that of Linux include/uapi/linux/ethtool.h: 23 numbers of 32 bits.
func TestModerationIsTheLongestThatTheDriverMayChoose(t *testing.T) {
	if size := unsafe.Sizeof(coalesce{}); size != 23*4 {
		t.Fatalf("struct ethtool_coalesce has %d bytes, want 92", size)
	}
	for name, offset := range map[string][2]uintptr{
		"rx_coalesce_usecs":        {unsafe.Offsetof(coalesce{}.rxMicroseconds), 1 * 4},
		"rx_coalesce_usecs_irq":    {unsafe.Offsetof(coalesce{}.rxMicrosecondsIRQ), 3 * 4},
		"use_adaptive_rx_coalesce": {unsafe.Offsetof(coalesce{}.adaptiveRx), 10 * 4},
		"rx_coalesce_usecs_low":    {unsafe.Offsetof(coalesce{}.rxMicrosecondsLow), 13 * 4},
		"rx_coalesce_usecs_high":   {unsafe.Offsetof(coalesce{}.rxMicrosecondsHigh), 18 * 4},
	} {
		if offset[0] != offset[1] {
			t.Errorf("%s is at %d, want %d", name, offset[0], offset[1])
		}
	}
	for _, c := range []struct {
		of   coalesce
		want time.Duration
	}{
		{coalesce{}, 0},
		{coalesce{rxMicroseconds: 50}, 50 * us},
		{coalesce{rxMicroseconds: 3, rxMicrosecondsIRQ: 20}, 20 * us},
		{coalesce{rxMicroseconds: 3, rxMicrosecondsHigh: 900}, 3 * us}, // unused without adaptive moderation
		{coalesce{adaptiveRx: 1, rxMicroseconds: 8}, 256 * us},
		{coalesce{adaptiveRx: 1, rxMicrosecondsHigh: 900}, 900 * us},
	} {
		if got := c.of.moderation(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.of, got, c.want)
		}
	}
}

func TestAnInterfaceThatDoesNotModerateHasNoModeration(t *testing.T) {
	for _, name := range []string{"lo", "", "no-such-interface", "a-name-that-is-too-long-for-one"} {
		if got := ModerationOf(name); got != 0 {
			t.Errorf("%q: %v", name, got)
		}
	}
}
