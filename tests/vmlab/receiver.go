package vmlab

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/tests/receiver"
	"oneway.example/tests/vmlab/truth"
)

// Receiver is a GNSS receiver without a pulse: it writes NMEA sentences to a
// terminal on the host, which is a guest's serial port.
type Receiver struct {
	// Path of the terminal, for Options.Serial.
	Path string

	master, slave *os.File
	stop          context.CancelFunc
	writing       sync.WaitGroup
}

// NewReceiver opens the terminal; nothing is written yet.
func NewReceiver() (*Receiver, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	r := &Receiver{Path: fmt.Sprintf("/dev/pts/%d", n), master: master}
	// Kept open, so that the terminal exists until the guest opens it.
	if r.slave, err = os.OpenFile(r.Path, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	return r, raw(r.slave)
}

// raw disables the terminal's echo and conversions.
func raw(f *os.File) error {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return fmt.Errorf("vmlab: %w", err)
	}
	t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Oflag &^= unix.OPOST
	t.Iflag &^= unix.ICRNL | unix.IXON | unix.INLCR
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t); err != nil {
		return fmt.Errorf("vmlab: %w", err)
	}
	return nil
}

// Write begins to write sentences: those of each true second, with this latency.
func (r *Receiver) Write(line truth.Line, late time.Duration) {
	r.Quiet()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.writing.Go(func() {
		second := line.At(truth.Counter()).Time().Truncate(time.Second)
		for {
			second = second.Add(time.Second)
			due := second.Add(late)
			if !ctxtime.Sleep(ctx, due.Sub(line.At(truth.Counter()).Time())) {
				return
			}
			if _, err := r.master.WriteString(sentences(second)); err != nil {
				return // the guest has ended
			}
		}
	})
}

// Quiet ends the sentences: the receiver was unplugged.
func (r *Receiver) Quiet() {
	if r.stop != nil {
		r.stop()
		r.writing.Wait()
	}
}

// Close ends the sentences and the terminal.
func (r *Receiver) Close() error {
	r.Quiet()
	_ = r.slave.Close()
	return r.master.Close()
}

// sentences are those of a receiver with a fix at a second (NMEA 0183: RMC, GGA, GSA).
func sentences(at time.Time) string {
	hms, dmy := at.Format("150405"), at.Format("020106")
	return receiver.Sentence("GPRMC,%s.00,A,3729.1000,N,12657.2000,E,0.0,0.0,%s,,,A", hms, dmy) +
		receiver.Sentence("GPGGA,%s.00,3729.1000,N,12657.2000,E,1,08,0.9,50.0,M,20.0,M,,", hms) +
		receiver.Sentence("GPGSA,A,3,01,02,03,04,05,06,07,08,,,,,1.6,0.9,1.3")
}

// sentenceRefclock is that of chrony-config/usb-nmea, polled every 2 s instead of every
// 16 s: sentences that come 0 to 0.6 s late.
const sentenceRefclock = "refclock SHM 0 refid NMEA poll 1 precision 1e-3 offset 0.3 delay 0.6"

const gpsdName = "gpsd"

// sentencesLate: there is no pulse, and gpsd's sentences are 400 ms late.
func sentencesLate() Scenario {
	return Scenario{
		Name: "NMEA 400 ms late, no PPS", States: []string{"synchronized", "unsynchronized", "synchronized"}, Reason: "local_unsynchronized",
		Metric: `oneway_clock_reference_info{kind="nmea"} is there`, Alert: "OnewayDelayBoundAboveLimit",
		Met: func(local, _ *Values) bool { return local.Appeared("oneway_clock_reference_info", ",nmea}") },
		Do: func(r *Run) error {
			return inTurn(
				r.Local.KillChronyd, r.Local.NoPulse, r.Local.gpsd,
				func() error { r.Receiver.Write(r.Line, 400*time.Millisecond); return nil },
				func() error { return r.Local.Chronyd(sentenceRefclock) },
				r.Local.StopAgent,
				func() error { return r.Local.Agent(receiverConfig) },
				func() error { return r.Local.Until(settleTime, "unsynchronized", In("unsynchronized")) },
				func() error { return r.Local.Until(settleTime, "synchronized", In("synchronized")) },
				pause(15*time.Second),
			)
		},
	}
}

// unplugged: the receiver, the only source, is removed.
func unplugged() Scenario {
	return Scenario{
		Name: "gpsd unplugged", States: []string{"synchronized", "holdover", "synchronized"},
		Metric: `oneway_clock_state{state="holdover"} is 1`, Alert: "OnewayGNSSSilent",
		Met: func(local, _ *Values) bool { return local.Reached("oneway_clock_state{chrony,holdover}", 1) },
		Do: func(r *Run) error {
			r.Receiver.Quiet()
			return inTurn(
				func() error { return r.Local.Until(settleTime, "holdover", In("holdover")) },
				pause(5*time.Second),
			)
		},
		Mend: func(r *Run) error {
			return r.Local.renew()
		},
	}
}

// gpsd starts it on the serial port.
func (h *Host) gpsd() error { return h.start(gpsdName, "gpsd", "-N", "-n", "/dev/ttyS0") }
