package vmlab

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// Names of the two guests: the local one sends test packets, the remote one replies.
const (
	LocalName  = "near"
	RemoteName = "far"
)

// Drift is the rate of the guests' clocks against the truth, left alone: that of
// an average crystal. An undisciplined clock is soon wrong.
const Drift = -20e-6

// Lab is two guests, each with chronyd and the agent.
type Lab struct {
	Line          truth.Line
	Local, Remote *Host
	// Receiver is at the local guest's serial port.
	Receiver *Receiver
	// RemoteReceiver is at the remote guest's; nil but for LabOptions.HostTime.
	RemoteReceiver *Receiver
	network        *Network
	awake          *os.File // nil: not requested
}

// Host is a guest and what it has logged so far.
type Host struct {
	*Guest
	states  tail[record.State]
	packets tail[record.Packet]
	metrics tail[record.Metrics]
}

// LabOptions are the options of a lab.
type LabOptions struct {
	// Dir is an absolute directory, see Options.Dir; the guests' logs of an earlier run
	// in it are removed.
	Dir string
	// Logs is a directory, see Options.Logs; each guest has one of its name in it. Empty: Dir.
	Logs string
	// Kernel, Init, Preload: see Options.
	Kernel, Init, Preload string
	// HostTime makes the host's own clock the truth, for guests whose kernel has a pulse
	// of its seconds (kernel/pps-host.c); each then has a receiver.
	HostTime bool
}

// StartLab boots both guests; each runs only its init.
func StartLab(o LabOptions) (*Lab, error) {
	if !truth.Supported {
		return nil, errors.New("vmlab: no counter that the guests share on this processor; amd64 has one")
	}
	network, err := NewNetwork(LocalName, RemoteName)
	if err != nil {
		return nil, err
	}
	receiver, err := NewReceiver()
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	l := &Lab{Receiver: receiver, network: network, awake: keepAwake()}
	if o.HostTime {
		l.Line = truth.Calibrate(hostTimeMeasured, 0)
		if l.RemoteReceiver, err = NewReceiver(); err != nil {
			return nil, errors.Join(err, receiver.Close(), network.Close())
		}
	} else {
		l.Line = truth.Calibrate(time.Second, -Drift)
		l.Line.UTC = leapDay(l.Line.UTC)
	}
	hosts := []*Host{{}, {}}
	errs := make([]error, len(hosts))
	var starting sync.WaitGroup
	for i, name := range []string{LocalName, RemoteName} {
		starting.Go(func() {
			dir := filepath.Join(o.Dir, name)
			if errs[i] = os.RemoveAll(dir); errs[i] != nil {
				return
			}
			g := Options{
				Kernel: o.Kernel, Name: name, Dir: dir, Logs: filepath.Join(cmp.Or(o.Logs, o.Dir), name), Init: o.Init, Preload: o.Preload, Line: l.Line,
				Processor: i + 1, Network: network, Capture: name, Address: fmt.Sprintf("10.9.0.%d/24", i+1),
			}
			g.Devices = o.HostTime
			switch {
			case name == LocalName:
				g.Serial = receiver.Path
			case l.RemoteReceiver != nil:
				g.Serial = l.RemoteReceiver.Path
			}
			hosts[i].Guest, errs[i] = Start(g)
			hosts[i].follow(dir)
		})
	}
	starting.Wait()
	l.Local, l.Remote = hosts[0], hosts[1]
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// hostTimeMeasured is the time of comparing the counter with the host's clock where
// that is the truth: two readings of 100 ns over it are 20 ns a second.
const hostTimeMeasured = 10 * time.Second

// leapDay is the same time of the last day of that year: on no other than that and
// the last of June does chronyd accept a leap second (reference.c, is_leap_second_day).
// It is never less than an hour to the end of that day.
func leapDay(now instant.Time) instant.Time {
	t := now.Time()
	return instant.FromTime(time.Date(t.Year(), time.December, 31, t.Hour()%23, t.Minute(), t.Second(), t.Nanosecond(), time.UTC))
}

// RemoteAddress is the address of the remote guest.
const RemoteAddress = "10.9.0.2"

func (h *Host) follow(dir string) {
	h.states.file = filepath.Join(dir, record.StatesFile)
	h.packets.file = filepath.Join(dir, record.PacketsFile)
	h.metrics.file = filepath.Join(dir, record.MetricsFile)
}

// Close switches both guests off.
func (l *Lab) Close() error {
	if l.awake != nil {
		_ = l.awake.Close()
	}
	errs := []error{nil, nil}
	var closing sync.WaitGroup
	for i, h := range []*Host{l.Local, l.Remote} {
		if h.Guest != nil {
			closing.Go(func() { errs[i] = h.Close() })
		}
	}
	closing.Wait()
	if l.RemoteReceiver != nil {
		errs = append(errs, l.RemoteReceiver.Close())
	}
	return errors.Join(append(errs, l.Receiver.Close(), l.network.Close())...)
}

// Both applies f to each guest, in parallel.
func (l *Lab) Both(f func(*Host) error) error {
	var remote error
	var doing sync.WaitGroup
	doing.Go(func() { remote = f(l.Remote) })
	local := f(l.Local)
	doing.Wait()
	return errors.Join(local, remote)
}

// Track is the host's clock against the truth so far.
func (h *Host) Track(line truth.Line) (*truth.Track, error) {
	b, err := os.ReadFile(filepath.Join(h.Dir, record.TracksFile))
	if err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	return truth.NewTrack(line, truth.ParsePairs(b), widestPair), nil
}

// widestPair is the widest gap of a pair that the truth uses. A guest's
// system call takes 15 to 30 us there and as long back.
const widestPair = 80 * time.Microsecond
