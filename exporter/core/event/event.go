// Package event says what an event is: a change of a path or of an agent at one time, which somebody who asks "what happened
// at 02:13" wants in one list. Package eventlog publishes events.
package event

// Kind is what happened: the label kind of the series of events, and the tag kind of their points.
type Kind string

// Kinds of events of a path.
const (
	// Down: the path has no reply any more (pathstate.Down).
	Down Kind = "down"
	// Degraded: loss or delay is above its limit for certain (pathstate.Degraded), and was not before. A path that is degraded after it was down has no event: it
	// has one when it is up.
	Degraded Kind = "degraded"
	// Recovered: the path is up after it was degraded or down.
	Recovered Kind = "recovered"
	// DelayRisen: the delay left the baseline of the path (package incident). Profile full only.
	DelayRisen Kind = "delay_risen"
	// LossRisen: the loss left the baseline of the path (package incident). Profile full only.
	LossRisen Kind = "loss_risen"
	// RouteChanged: the packets of a direction pass another number of routers than before, and go on to do so. Profile full only.
	RouteChanged Kind = "route_changed"
	// FloorChanged: the smallest round trip moved and stays there (package incident). Profile full only.
	FloorChanged Kind = "floor_changed"
	// RemoteRestarted: the reflector at the other end restarted. Profile full only.
	RemoteRestarted Kind = "remote_restarted"
	// LoadTest: a load test began to fill a link of the path.
	LoadTest Kind = "load_test"
)

// Kinds of events of a path or of an agent.
const (
	// MaintenanceBegun and MaintenanceEnded: planned work of the path, or of the agent and all of its paths.
	MaintenanceBegun Kind = "maintenance_begun"
	MaintenanceEnded Kind = "maintenance_ended"
)

// Kinds of events of an agent.
const (
	// ClockStepped: the clock of the host was stepped.
	ClockStepped Kind = "clock_stepped"
	// Restarted: the agent began to measure.
	Restarted Kind = "restarted"
	// Reloaded: another configuration is in force.
	Reloaded Kind = "reloaded"
	// ReloadFailed: a configuration was refused, and the previous one is still in force.
	ReloadFailed Kind = "reload_failed"
)

// Meaning is a kind with its meaning in a few words.
type Meaning struct {
	Kind  Kind
	Words string
}

// OfPaths are the kinds of events of a path, the most serious ones first.
func OfPaths() []Meaning {
	return []Meaning{
		{Down, "no replies"},
		{Degraded, "loss or delay above its limit"},
		{LossRisen, "loss left the path's baseline, profile full only"},
		{DelayRisen, "delay left the path's baseline, profile full only"},
		{RouteChanged, "another number of routers, profile full only"},
		{FloorChanged, "the smallest round trip moved, profile full only"},
		{RemoteRestarted, "the reflector restarted, profile full only"},
		{Recovered, "up again"},
		{LoadTest, "a load test began to fill a link of the path"},
		{MaintenanceBegun, "planned work began"},
		{MaintenanceEnded, "planned work ended"},
	}
}

// OfAgents are the kinds of events of an agent.
func OfAgents() []Meaning {
	return []Meaning{
		{ClockStepped, "the clock of the host was stepped"},
		{Restarted, "the agent began to measure"},
		{ReloadFailed, "a configuration was refused"},
		{Reloaded, "another configuration is in force"},
		{MaintenanceBegun, "planned work of all paths began"},
		{MaintenanceEnded, "planned work of all paths ended"},
	}
}

// Entries are the meanings as values of a label with a fixed set: "down: no replies".
func Entries(all []Meaning) (entries []string) {
	for _, m := range all {
		entries = append(entries, string(m.Kind)+": "+m.Words)
	}
	return entries
}
