package receiver

import "flag"

// Flags defines the settings as flags, with the current values as defaults.
func (s *Settings) Flags(f *flag.FlagSet) {
	f.IntVar(&s.Fix, "receiver.fix", s.Fix, "1: none, 2: 2D, 3: 3D")
	f.IntVar(&s.Used, "receiver.used", s.Used, "satellites that a fix uses, at most 12")
	f.IntVar(&s.Seen, "receiver.seen", s.Seen, "satellites in view")
	f.BoolVar(&s.Silent, "receiver.silent", s.Silent, "no sentences")
	f.DurationVar(&s.Late, "receiver.late", s.Late, "time of the sentences after their second")
	f.Float64Var(&s.Track.Latitude, "receiver.latitude", s.Track.Latitude, "center of the track, degrees north")
	f.Float64Var(&s.Track.Longitude, "receiver.longitude", s.Track.Longitude, "center of the track, degrees east")
	f.Float64Var(&s.Track.Altitude, "receiver.altitude", s.Track.Altitude, "meters")
	f.Float64Var(&s.Track.Radius, "receiver.radius", s.Track.Radius, "radius of the track, meters; 0: it stands still")
	f.Float64Var(&s.Track.Speed, "receiver.speed", s.Track.Speed, "meters per second along the track")
}
