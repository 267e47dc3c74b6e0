package record

import "oneway.example/exporter/core/sample"

// RunHelp is the help of the field of a run.
const RunHelp = "Id of the run, the name of its report."

// Declarer is implemented by a Type of a registry that records tables.
type Declarer interface {
	// Tables returns their schemas.
	Tables() []*Schema
}

// Declared returns the schemas of those types that are Declarers.
func Declared[T any](types []T) (all []*Schema) {
	for _, t := range types {
		if d, ok := any(t).(Declarer); ok {
			all = append(all, d.Tables()...)
		}
	}
	return all
}

// Values of the tag end of TCPTrace: whose samples they are.
const (
	SenderEnd   = "sender"
	ReceiverEnd = "receiver"
)

// TCPTrace has samples of the kernel's state of a TCP connection of a run: of one end, recorded when its transfer has ended. The
// reference of the times is when this host's end began; the remote end began at most one round trip earlier or later. Tag flow is
// the number of the connection in its transfer, from 0.
var TCPTrace = &Schema{
	Name: "oneway_tcp_trace", Tags: []string{"direction", "end", "flow", "path", "probe"}, ID: "run", IDHelp: RunHelp,
	Columns: []Column{
		{Name: "at_ns"},
		{Name: "payload_bytes"},
		{Name: "acked_bytes"},
		{Name: "sent_bytes"},
		{Name: "retransmitted_bytes"},
		{Name: "outstanding_bytes"},
		{Name: "not_sent_bytes"},
		{Name: "cwnd_segments"},
		{Name: "ssthresh_segments"},
		{Name: "rtt_ns"},
		{Name: "rttvar_ns"},
		{Name: "busy_ns"},
		{Name: "receive_window_limited_ns"},
		{Name: "send_buffer_limited_ns"},
		{Name: "send_buffer_bytes"},
		{Name: "receive_buffer_bytes"},
	},
}

// Columns of TCPBytes.
const (
	ByteFlow   = iota // the number of the flow
	ByteOffset        // of the byte in its stream
	ByteSent          // when the byte was sent for the first time
	ByteDelay         // its one-way delay; of a byte that was sent again the time from its first transmission to its arrival
	ByteBound         // the error bound of the delay
	ByteAgain         // 1: the byte was sent more than once
)

// TCPBytes has the one-way delays of sampled bytes of the TCP streams of a direction of a run, recorded when the run has ended. The
// reference of the times is the clock of the sender.
var TCPBytes = &Schema{
	Name: "oneway_run_tcp_byte", Tags: []string{"direction", "path", "probe"}, ID: "run", IDHelp: RunHelp, Time: ByteSent,
	Columns: []Column{
		ByteFlow: {Name: "flow"}, ByteOffset: {Name: "offset_bytes"}, ByteSent: {Name: "sent_ns"}, ByteDelay: {Name: "delay_ns"},
		ByteBound: {Name: "delay_error_bound_ns"}, ByteAgain: {Name: "retransmitted"},
	},
}

// Columns of IncidentPackets. The error bound and the reason of a one-way delay follow it.
const (
	IncidentSeq       = 0
	IncidentSent      = 1
	IncidentOutcome   = 2
	IncidentForward   = 3
	IncidentReverse   = 6
	IncidentRoundTrip = 9
)

// IncidentPackets has the packets of a light probe in the last minutes before a report of an incident, in the order of sending.
var IncidentPackets = &Schema{
	Name: "oneway_incident_packet", Tags: []string{"path", "probe"}, ID: "report", IDHelp: "Id of the report of the incident.",
	Time: IncidentSent, TimeOnly: true, Repeats: true,
	Columns: []Column{
		IncidentSeq: {Name: "seq", Help: "Number of the packet."}, IncidentSent: {Name: "sent_ns"},
		IncidentOutcome: {
			Name: "outcome", Text: func(v int64) string { return Outcome(v).String() },
			Help: "received, lost (no reply within the loss timeout) or late (a reply after it; the packet has a point with lost, too).",
		},
		IncidentForward: {Name: "forward_ns", Field: "forward_delay_seconds", Help: "One-way delay from this agent to the peer, in seconds."},
		{Name: "forward_error_bound_ns", Field: "forward_delay_error_bound_seconds", Help: "Error bound of forward_delay_seconds, in seconds."},
		{
			Name: "forward_reason", Text: reason,
			Help: "ok, or why there is no forward delay: the values of label reason of oneway_delay_invalid_total.",
		},
		IncidentReverse: {Name: "reverse_ns", Field: "reverse_delay_seconds", Help: "One-way delay from the peer to this agent, in seconds."},
		{Name: "reverse_error_bound_ns", Field: "reverse_delay_error_bound_seconds", Help: "Error bound of reverse_delay_seconds, in seconds."},
		{Name: "reverse_reason", Text: reason, Help: "As forward_reason."},
		IncidentRoundTrip: {Name: "round_trip_ns", Field: "round_trip_time_seconds", Help: "Round-trip time without the reflector's part, in seconds."},
	},
}

func reason(v int64) string { return sample.Reason(v).String() }

// Columns of Track. Degrees are of WGS 84.
const (
	TrackAt        = iota // 0: the time of the position is Table.Begin
	TrackLatitude         // degrees, north positive
	TrackLongitude        // degrees, east positive
	TrackSpeed            // over ground in meters per second; unknown if the receiver reports none
)

// Track has positions of this host. Their time is the time by the receiver or, if the receiver has no valid time, the time by this
// host's clock at which the receiver's report was read.
var Track = &Schema{
	Name: "oneway_track", Time: TrackAt, TimeOnly: true,
	Columns: []Column{
		TrackAt:        {Name: "at_ns"},
		TrackLatitude:  {Name: "latitude_degrees", Real: true, Help: "Latitude in degrees, WGS 84, north positive."},
		TrackLongitude: {Name: "longitude_degrees", Real: true, Help: "Longitude in degrees, WGS 84, east positive."},
		TrackSpeed:     {Name: "speed_meters_per_second", Real: true, Help: "Speed over ground in meters per second; absent if the receiver reports none."},
	},
}

// Columns of Events.
const (
	EventAt    = iota // 0: the time of the event is Table.Begin
	EventCount        // 1
)

// Events has the events of paths and of the agent (package event), a table each: the tags are the kind and the path, and the text is the ID.
var Events = &Schema{
	Name: "oneway_event", Tags: []string{"kind", "path"}, ID: "text", IDHelp: "What happened, for people.", Time: EventAt, TimeOnly: true,
	Columns: []Column{
		EventAt:    {Name: "at_ns"},
		EventCount: {Name: "events", Help: "1, to be summed. The point has the time of the event; kind is a value of the label kind of oneway_path_event_timestamp_seconds or oneway_agent_event_timestamp_seconds, and path is none for an event of the agent."},
	},
}
