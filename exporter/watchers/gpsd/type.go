package gpsd

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/watcher"
)

// Type is the type gpsd: the GNSS receiver behind a gpsd.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name is gpsd.
func (Type) Name() string { return "gpsd" }

// Tables implements record.Declarer.
func (Type) Tables() []*record.Schema { return []*record.Schema{record.Track} }

// settings are the options in the configuration.
type settings struct {
	Address string `yaml:"address"`
	Device  string `yaml:"device"`
}

// Describe describes each option.
func (s *settings) Describe() []option.Description {
	return []option.Description{
		option.Value(&s.Address, DefaultAddress, "Host and TCP port of gpsd, which should be this host: the offsets are by its clock.").Checked(func(string) error { return checkAddress(s.Address) }),
		option.Text(&s.Device, "The name of the receiver in gpsd, such as /dev/ttyS0; by default the first device that reports.").Checked(func(string) error { return checkDevice(s.Device) }),
	}
}

// Document describes the type.
func (Type) Document() (doc string, options []option.Described) {
	return "A GNSS receiver, by gpsd: fix, satellites, pulse and sentence against this clock.", []option.Described{new(option.Defaults[settings]())}
}

// New makes the client of a gpsd.
func (Type) New(env watcher.Env, decode func(into ...any) error) (watcher.Watcher, error) {
	o := option.Defaults[settings]()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return New(Options{Env: env, Address: o.Address, Device: o.Device})
}

// DefaultName implements watcher.DefaultNamer.
func (Type) DefaultName() string { return DefaultName }

// StatusDetails implements watcher.Detailed.
func (Type) StatusDetails() any { return Details{} }

// Details is the state of the receiver. Unknown values are absent.
type Details struct {
	// Name and Address are configured, Device is the name of the device in gpsd.
	Name    string `json:"name"`
	Address string `json:"address"`
	Device  string `json:"device,omitempty"`
	// Replying: gpsd is connected; Connected: gpsd also receives from the receiver.
	Replying  bool `json:"gpsd_replying"`
	Connected bool `json:"connected"`
	// Error is why gpsd is not connected.
	Error string `json:"error,omitempty"`
	// Fix is "none", "2D", "3D" or "unknown".
	Fix string `json:"fix"`
	// Used and Seen count satellites.
	Used *int `json:"satellites_used,omitempty"`
	Seen *int `json:"satellites_seen,omitempty"`
	// PulseOffset is the system clock minus the true second at gpsd's last pulse.
	PulseOffset *document.Seconds `json:"pulse_offset_seconds,omitempty"`
	// LastMessage is the time of the receiver's last message.
	LastMessage time.Time `json:"last_message,omitzero"`
}

// Status is the state of the receiver.
func (c *Client) Status() watcher.Status {
	now := c.State()
	d := Details{
		Name: c.options.Name, Address: c.options.Address, Device: now.Device, Replying: now.Replying, Connected: now.Connected,
		Fix: now.Fix.String(), Used: now.Used.known(), Seen: now.Seen.known(), LastMessage: now.LastMessage.Time(),
	}
	c.mu.Lock()
	d.Error = c.failure
	c.mu.Unlock()
	if !now.Pulse.At.IsZero() {
		d.PulseOffset = new(document.Seconds(now.Pulse.Offset))
	}
	return d.Status()
}

// known is the number; nil: it is unknown.
func (c Count) known() *int {
	if !c.Known {
		return nil
	}
	return &c.N
}

// Status has the generic parts of the details.
func (d Details) Status() watcher.Status {
	s := watcher.Status{Title: "Receiver", Device: d.Device, Up: d.Connected, State: "connected", Reason: d.Error, Details: d}
	switch {
	case !d.Replying:
		s.State = "gpsd does not reply"
		s.Warnings = []string{fmt.Sprintf("gpsd does not reply at %s: the state of the receiver %s is not known.", d.Address, d.Name)}
	case !d.Connected:
		s.State = "no data from the receiver"
		s.Warnings = []string{fmt.Sprintf("gpsd receives no data from the receiver %s.", d.Name)}
	case d.Fix == FixNone.String():
		s.Up, s.State = false, "no fix"
		s.Warnings = []string{fmt.Sprintf("The receiver %s has no fix.", d.Name)}
	}
	pulse := watcher.Line{Name: "Clock at pulse"}
	if d.PulseOffset != nil {
		pulse.Value = d.PulseOffset.Duration()
	}
	s.Lines = []watcher.Line{{Name: "Fix", Value: d.Fix}, {Name: "Satellites", Value: d.satellites()}, pulse, {Name: "Last message", Value: d.LastMessage}}
	return s
}

func (d *Details) satellites() string {
	text := "unknown"
	if d.Used != nil {
		text = fmt.Sprintf("%d used", *d.Used)
	}
	if d.Seen != nil {
		text += fmt.Sprintf(" of %d seen", *d.Seen)
	}
	return text
}
