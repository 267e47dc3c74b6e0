package pulse

import "flag"

// Flags defines the settings as flags, with the current values as defaults.
func (s *Settings) Flags(f *flag.FlagSet) {
	f.BoolVar(&s.Stopped, "pulse.stopped", s.Stopped, "no pulses")
	f.DurationVar(&s.Offset, "pulse.offset", s.Offset, "time of a pulse after the whole second of CLOCK_REALTIME, less than 400ms")
	f.DurationVar(&s.Jitter, "pulse.jitter", s.Jitter, "standard deviation of a pulse, at most 90ms")
	f.Float64Var(&s.Skip, "pulse.skip", s.Skip, "share of pulses that do not occur, 0 to 1")
}
