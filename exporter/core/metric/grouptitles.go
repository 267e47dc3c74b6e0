package metric

// Titles of the groups, by which measurements and tests name a group.
const (
	TitleProbes     = "Probes"
	TitlePackets    = "Packets"
	TitleDelay      = "Delay"
	TitleVoice      = "Voice"
	TitleRuns       = "Runs of load tests"
	TitleLoad       = "Link under load"
	TitleWorking    = "Working delay: of others while a load test runs"
	TitleSizeSweep  = "Packet size by packet rate"
	TitleCapacity   = "Capacity by packet trains"
	TitleTCP        = "TCP"
	TitleClock      = "Clock"
	TitlePulse      = "Pulse and receiver"
	TitleLoadServer = "Load server"
	TitleOutputs    = "Outputs"
	TitleOnDemand   = "On-demand probes"
	TitleReplies    = "Replies of on-demand probes"
	TitleVerdicts   = "Verdicts about histories"
	TitleSelf       = "Self"
)
