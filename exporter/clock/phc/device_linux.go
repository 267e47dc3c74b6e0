package phc

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// Device is an open PTP hardware clock, /dev/ptpN (linux/ptp_clock.h).
type Device struct {
	file    *os.File
	precise bool
}

// Open opens the clock of a given number (see Info.Clock).
func Open(number int) (*Device, error) {
	f, err := os.Open(fmt.Sprintf("/dev/ptp%d", number)) // reading needs fewer permissions than writing
	if err != nil {
		return nil, fmt.Errorf("phc: %w", err)
	}
	d := &Device{file: f}
	_, err = unix.IoctlPtpSysOffsetPrecise(int(f.Fd()))
	d.precise = err == nil
	return d, nil
}

// Close closes the device.
func (d *Device) Close() error { return d.file.Close() }

// samples is the number of readings of PTP_SYS_OFFSET_EXTENDED; the one with the least uncertainty is taken.
const samples = 10

// Read reads both clocks: in one hardware transaction where the machine supports it (PTP_SYS_OFFSET_PRECISE), else the
// card between two readings of the system clock (PTP_SYS_OFFSET_EXTENDED, Linux 5.0).
func (d *Device) Read() (Reading, error) {
	fd := int(d.file.Fd())
	if d.precise {
		o, err := unix.IoctlPtpSysOffsetPrecise(fd)
		if err != nil {
			return Reading{}, fmt.Errorf("phc: PTP_SYS_OFFSET_PRECISE: %w", err)
		}
		return Reading{Device: toInstant(o.Device), System: toInstant(o.Realtime)}, nil
	}
	o, err := unix.IoctlPtpSysOffsetExtended(fd, samples)
	if err != nil {
		return Reading{}, fmt.Errorf("phc: PTP_SYS_OFFSET_EXTENDED: %w", err)
	}
	return tightest(o.Ts[:min(int(o.Samples), len(o.Ts))])
}

// tightest takes, of readings of the system, the card and the system again, the one with the least time between the two
// system readings: the true time is their midpoint plus or minus half of that time.
func tightest(readings [][3]unix.PtpClockTime) (best Reading, err error) {
	best.Uncertainty = math.MaxInt64
	for _, t := range readings {
		before, after := toInstant(t[0]), toInstant(t[2])
		width := after.Sub(before)
		half := (width + 1) / 2
		if width >= 0 && half < best.Uncertainty { // negative: the system clock was stepped in between
			best = Reading{Device: toInstant(t[1]), System: before.Add(width / 2), Uncertainty: half}
		}
	}
	if best.Uncertainty == math.MaxInt64 {
		return best, errors.New("phc: in all readings the second system time precedes the first")
	}
	return best, nil
}

func toInstant(t unix.PtpClockTime) instant.Time { return instant.FromUnix(t.Sec, int64(t.Nsec)) }

// Interface reads which timestamps an interface supports.
func Interface(name string) (Info, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Info{}, fmt.Errorf("phc: socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	ts, err := unix.IoctlGetEthtoolTsInfo(fd, name)
	if err != nil {
		return Info{}, fmt.Errorf("phc: ETHTOOL_GET_TS_INFO of %s: %w", name, err)
	}
	info := infoOf(ts)
	if config, err := unix.IoctlGetHwTstamp(fd, name); err == nil {
		info.Enabled = config.Tx_type != unix.HWTSTAMP_TX_OFF && config.Rx_filter != unix.HWTSTAMP_FILTER_NONE
		info.AllPackets = config.Rx_filter == unix.HWTSTAMP_FILTER_ALL
	}
	return info, nil
}

func infoOf(ts *unix.EthtoolTsInfo) Info {
	const hardware = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	return Info{
		Clock:    int(ts.Phc_index),
		Hardware: ts.So_timestamping&hardware == hardware,
	}
}

// Info is which timestamps an interface supports (ETHTOOL_GET_TS_INFO).
type Info struct {
	// Clock is the number of the card's clock, -1 if it has none.
	Clock int
	// Hardware: the card timestamps both transmitted and received packets.
	Hardware bool
	// Enabled: timestamping is enabled on the card (SIOCGHWTSTAMP).
	Enabled bool
	// AllPackets: it timestamps all received packets. Otherwise it timestamps PTP packets or some others, and test
	// packets have the kernel's timestamp.
	AllPackets bool
}
