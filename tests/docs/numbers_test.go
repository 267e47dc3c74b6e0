package docs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/standstill"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/estimate/tcpdelay"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/estimate/working"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/helper"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Files with texts, and packages with constants.
const (
	metrics      = "exporter/doc/METRICS.md"
	points       = "exporter/doc/MEASUREMENTS.md"
	options      = "deploy/oneway.yml"
	security     = "SECURITY.md"
	helperDoc    = "exporter/doc/decisions/0018-helper-processes.md"
	workingDoc   = "exporter/doc/decisions/0012-working-delay.md"
	tcpDoc       = "exporter/doc/tcpdelay.md"
	meshDoc      = "exporter/doc/mesh.md"
	gpsd, pulses = "exporter/watchers/gpsd", "exporter/watchers/pps"
	reflector    = "exporter/reflector"
	loadServer   = "exporter/load/loadserver"
	helperCode   = "exporter/probe/helper"
	httpd        = "exporter/serve/httpd"
	influx       = "exporter/outputs/influxdb"
	alerts       = "deploy/prometheus/rules/oneway-load-test-alerts.yml"
	pathAlerts   = "deploy/prometheus/rules/oneway-alerts.yml"
	udpCode      = "exporter/load/traffictypes/udptraffic"
	tcpCode      = "exporter/load/traffictypes/tcptraffic"
	labels       = "exporter/agent/pathlabel"
	runbooks     = "exporter/serve/runbook/"
)

// TestTextsHaveTheConstantsOfPackages: as TestTextsHaveTheNumbersOfTheProgram, of constants that need not be exported.
func TestTextsHaveTheConstantsOfPackages(t *testing.T) {
	count := func(format, directory string, names ...string) string {
		var all []any
		for _, name := range names {
			all = append(all, int(number(t, directory, name)))
		}
		return fmt.Sprintf(format, all...)
	}
	comments := strings.NewReplacer("# ", "", "// ", "", "//\t", "")
	words := map[int]string{3: "three", 4: "four", 8: "eight"}
	part := func(directory, name string) string { return option.Part(int(number(t, directory, name))) }
	memory := say(t, words, int(number(t, "exporter/core/memlimit", "shareOfRuntime"))) + " " + strings.TrimPrefix(option.Part(int(number(t, "exporter/core/memlimit", "shareOfGroup"))), "a ") + "s"
	lost := unit.Duration(span(t, pulses, "lostAfter"))
	gone := unit.Duration(span(t, gpsd, "pulseFor"))
	silent := unit.Duration(span(t, gpsd, "timeout"))
	const header = ipheader.IPv4 + ipheader.UDP
	light := 8 * (10*(stamp.LightBytes+header) + probe.LightBytes + header) // ten packets a second, and a query
	kilobits := fmt.Sprintf("%.0f kb/s in each direction", float64(light)/1000)
	window, quiet := unit.Duration(span(t, "exporter/probes/stamp", "leastWindow")), unit.Duration(traffic.IdleTimeout)
	inWords := map[time.Duration]string{time.Minute: "a minute", time.Hour: "For an hour", 24 * time.Hour: "a day"}
	paused := say(t, map[time.Duration]string{time.Second: "a second or more"}, standstill.Limit)
	hour := say(t, map[time.Duration]string{time.Hour: "an hour"}, bound.Limit)
	margin := span(t, loadServer, "returnMargin")
	meshed := defaults(&mesh.Options{})
	few := fmt.Sprintf("fewer than %d packets", working.MinPackets)
	var damages []string
	for d := stream.Intact; d <= stream.BadHeader; d++ {
		damages = append(damages, fmt.Sprintf("%d %s", d, say(t, map[stream.Damage]string{
			stream.Intact: "none", stream.Truncated: "truncated", stream.Overwritten: "overwritten", stream.BitErrors: "bit errors", stream.BadHeader: "in the header",
		}, d)))
	}
	for _, c := range []struct{ file, text string }{
		{metrics, "has a device that was found or sent data in the last " + silent},
		{metrics, "does not report it, and after " + gone + " without a pulse"},
		{metrics, "after " + gone + " without such a message"},
		{metrics, "until enough pulses agree, and after " + lost + " without a pulse"},
		{metrics, "before " + say(t, words, int(number(t, pulses, "jitterFrom"))) + " intervals, and after " + lost + " without a pulse"},
		{gpsd + "/gpsd.go", "pauses that double up to " + unit.Duration(span(t, gpsd, "defaultMaxBackOff"))},
		{gpsd + "/gpsd.go", "request after " + silent + " of silence, is disconnected after " + silent + " more"},
		{gpsd + "/gpsd.go", "after " + silent + " of silence"},
		{pulses + "/pps.go", "No pulse for " + lost},
		{pulses + "/pps.go", "within the last " + lost},
		{metrics, fmt.Sprintf("differs by more than %g ppm from", 1e6*number(t, "exporter/estimate/ppsfit", "threshold"))},

		{metrics, fmt.Sprintf("decided fewer than %d packets", voice.MinPackets)},
		{metrics, "could change the quantile by more than " + say(t, map[float64]string{10: "a tenth"}, number(t, "exporter/estimate/delay", "tolerated")) + " of the median"},
		{meshDoc, say(t, words, int(number(t, "exporter/agent/config", "maxIncludeDepth"))) + " deep in all"},
		{security, fmt.Sprintf("can have a stream continue for %.0f s to an address", stream.CookieLasts.Seconds())},
		{security, fmt.Sprintf("returned a cookie of the last %.0f s", stream.CookieLasts.Seconds())},
		{security, fmt.Sprintf("ends %.0f s after its last cookie was sent", (stream.CookieLasts + udptraffic.Outage).Seconds())},
		{security, fmt.Sprintf("without a cookie of the last %.0f s", stream.CookieLasts.Seconds())},
		{security, fmt.Sprintf("whose last cookie is older than %.0f s", span(t, udpCode, "renewSoon").Seconds())},
		{security, fmt.Sprintf("for %.0f s after the last cookie returned was sent", (stream.CookieLasts + udptraffic.Outage).Seconds())},
		{security, fmt.Sprintf("while the last cookie returned is older than %.0f s", span(t, udpCode, "renewAfter").Seconds())},
		{"exporter/doc/decisions/0005-control.md", "the Upgrade `" + loadcontrol.Protocol + "`"},
		{"exporter/doc/decisions/0009-challenge.md", fmt.Sprintf("and %.0f s later the hellos end", udptraffic.Outage.Seconds())},
		{"exporter/doc/decisions/0009-challenge.md", fmt.Sprintf("a validation lasts %.0f s", stream.CookieLasts.Seconds())},
		{"exporter/doc/decisions/0009-challenge.md", fmt.Sprintf("more than %.0f s ago, the load server offers the client a new one twice a second, and ten times a second after %.0f s", span(t, udpCode, "renewAfter").Seconds(), span(t, udpCode, "renewSoon").Seconds())},
		{security, fmt.Sprintf("packets, with %d bytes each", stream.LoadServerMemory)},
		{"grafana-dashboards/dashboards/path.json", fmt.Sprintf("fewer than %d packets per window", voice.MinPackets)},
		{metrics, few + " had a valid delay"},
		{metrics, few + " were decided"},
		{metrics, fmt.Sprintf("fewer than %d replies arrived", working.MinPackets)},
		{"exporter/doc/schema/test.json", fmt.Sprintf("must not change it by more than %d. r_factor_step", voice.MostUnknown)},
		{options, kilobits},
		{workingDoc, kilobits},
		{"exporter/doc/load-tests.md", strings.Fields(kilobits)[0] + " kb/s"},

		{metrics, fmt.Sprintf("at least %d bytes, and with a key %d", stampfmt.MinReplyBytes, stampfmt.AuthenticatedBytes)},
		{metrics, fmt.Sprintf("at least %d bytes, %d with short_requests, and %d with require_key", stampfmt.MinSenderBytes, stampfmt.UnpaddedSenderBytes, stampfmt.AuthenticatedBytes)},
		{metrics, count("within the last %d packets or more", "exporter/estimate/seqwin", "Size")},
		{options, fmt.Sprintf("Reply with %d bytes to test packets of %d to %d bytes", stampfmt.UnauthenticatedBytes, stampfmt.UnpaddedSenderBytes, stampfmt.UnauthenticatedBytes-1)},
		{options, fmt.Sprintf("test packet has at least %d bytes", stampfmt.MinSenderBytes)},
		{options, fmt.Sprintf("one for each %d KiB", int(number(t, reflector, "memoryShare")*(number(t, reflector, "sessionBytes")+number(t, reflector, "growthBytes")))>>10)},
		{security, fmt.Sprintf("for at most one session for each %d KiB of the memory limit", int(number(t, reflector, "memoryShare")*(number(t, reflector, "sessionBytes")+number(t, reflector, "growthBytes")))>>10)},
		{options, "(" + part(reflector, "sourceShare") + " of that from one address"},
		{options, part(reflector, "networkShare") + " from one /24 or /48"},
		{options, fmt.Sprintf("bursts of %s seconds' worth", say(t, words, int(number(t, reflector, "newSessionBurst"))))},
		{options, memory + " of the control group's limit"},
		{security, memory + " of the limit of the control group"},
		{security, "give the Go runtime " + memory + " of"},
		{security, "can begin " + part(reflector, "newPart") + " of `max_sessions` a second, " + part(reflector, "sourceShare") + " of that from one address"},
		{security, part(reflector, "networkShare") + " from one /24 or /48, each at"},
		{security, count("least %d a second", reflector, "minNewSessions") + ", with bursts of " + say(t, words, int(number(t, reflector, "newSessionBurst"))) + " seconds"},
		{security, fmt.Sprintf("%d connections, %s of them for unknown peers", loadserver.DefaultMaxConnections, part(loadServer, "hostPart"))},
		{security, "an incomplete frame ends it after " + unit.Duration(span(t, "exporter/load/loadcontrol", "frameTime"))},
		{security, unit.Duration(span(t, httpd, "headerTimeout")) + " for a request's header in total"},
		{security, count("At most %d connections, half of", httpd, "maxConnections")},
		{security, count("address and %d in all", reflector, "rejectionsInTotal")},
		{"exporter/doc/decisions/0017-wrong-key.md", count("all sockets %d a second", reflector, "rejectionsInTotal")},
		{security, "`max_sessions` (" + thousands(int(number(t, reflector, "DefaultMaxSessions"))) + ") sessions"},
		{security, "at most " + thousands(int(number(t, tcpCode, "allSamples"))) + " samples"},
		{security, "1.5 times that time and " + unit.Duration(margin) + ", at most " + unit.Duration(span(t, loadServer, "mostWait")*3/2+margin)},
		{"ARCHITECTURE.md", "sends to it for " + unit.Duration(span(t, "exporter/load/loadtest", "IdleTime")) + " before the load"},
		{"ARCHITECTURE.md", unit.Duration(traffic.IdleTimeout) + " of silence of all"},
		{"deploy/prometheus/README.md", fmt.Sprintf("which needs %.0f minutes", rules.BadCallsFor.Minutes())},
		{"deploy/unscraped/README.md", fmt.Sprintf("(%.0f MB, compressed)", number(t, influx, "spoolBytes")/1e6)},
		{"deploy/unscraped/README.md", fmt.Sprintf("in memory (%.0f MB)", number(t, influx, "memoryBytes")/1e6)},
		{tcpDoc, count("at least %d bytes each", "exporter/estimate/tcpdelay", "LeastLags")},
		{security, part(loadServer, "sitePart") + " for those of one /48"},
		{loadServer + "/loadserver.go", "in all, " + part(loadServer, "hostPart") + " of them unknown peers from one address"},
		{points, "Damage of the packet: " + strings.Join(damages, ", ")},

		{metrics, fmt.Sprintf("error of the comparison, which is at least %g ms", milliseconds(t, "exporter/estimate/tcpdelay", "lagError"))},
		{metrics, count("fewer than %d pairs count", "exporter/probes/tcp", "leastTested")},
		{metrics, fmt.Sprintf("oneway_tcp_delay_withheld_ratio exceeds %g", tcpdelay.MaxWithheld)},
		{metrics, fmt.Sprintf("one byte in some %d KiB", int(number(t, tcpCode, "leastStep"))>>10)},
		{metrics, count("with fewer than %d repetitions", "exporter/probes/tcpsweep", "fewest")},
		{tcpDoc, fmt.Sprintf("the error of the comparison, %g ms and", milliseconds(t, "exporter/estimate/tcpdelay", "lagError"))},
		{tcpDoc, count("With fewer than %d pairs", "exporter/probes/tcp", "leastTested")},
		{tcpDoc, fmt.Sprintf("more than %g %% withheld", 100*tcpdelay.MaxWithheld)},
		{tcpDoc, fmt.Sprintf("with at most %g %%", 100*tcpdelay.MaxWithheld)},
		{tcpDoc, fmt.Sprintf("every %g ms", milliseconds(t, tcpCode, "spacing"))},
		{tcpDoc, fmt.Sprintf("at multiples of %d KiB", tcpstamp.Grid>>10)},
		{tcpDoc, fmt.Sprintf("a byte in %d KiB is sampled", tcpstamp.Grid>>10)},
		{tcpDoc, fmt.Sprintf("a sample every %d KiB needs", tcpstamp.Grid>>10)},
		{tcpDoc, fmt.Sprintf("one in %d KiB", int(number(t, tcpCode, "leastStep"))>>10)},
		{tcpDoc, fmt.Sprintf("buffer below %d KiB", int(number(t, tcpCode, "leastBuffer"))>>10)},
		{tcpDoc, fmt.Sprintf("messages below %d KiB", int(number(t, tcpCode, "leastBurst"))>>10)},
		{tcpDoc, fmt.Sprintf("message of %d KiB", int(number(t, tcpCode, "leastWhole"))>>10)},

		{helperDoc, fmt.Sprintf("at most %d MiB", helper.MaxLine>>20)},
		{helperDoc, "doubles from " + unit.Duration(span(t, helperCode, "firstPause")) + " to " + minutes(span(t, helperCode, "longestPause"))},
		{helperDoc, count("%d lines in ", helperCode, "maxLogged") + unit.Duration(span(t, helperCode, "logPeriod"))},
		{helperDoc, count("%d bytes of each", helperCode, "maxLogLine")},
		{helperDoc, fmt.Sprintf("read at %d MiB/s", int(number(t, helperCode, "errorsPerSecond"))>>20)},

		{"exporter/core/rules/files.go", "(" + window + " by default"},
		{"deploy/prometheus/prometheus-2.42.yml", "(" + window + " by default)"},
		{"deploy/prometheus/prometheus-3.0.yml", "(" + window + " by default)"},
		{"deploy/prometheus/prometheus-3.8.yml", "(" + window + " by default)"},
		{"deploy/unscraped/prometheus-agent.yml", "(" + window + " by default)"},
		{"exporter/core/rules/files.go", "beyond " + thousands(delay.ExactLimit) + " packets"},
		{metrics, "ends early after " + thousands(delay.PDVLimit) + " packets"},
		{metrics, fmt.Sprintf("good from %d, bad below %v.", voice.Satisfied, rules.ThresholdRFactor.Default)},
		{metrics, "nothing came from the other end for " + quiet},
		{security, "nothing was received for " + quiet + ": its session has ended"},
		{security, "payload of TCP was received for " + quiet + "; acknowledgments"},
		{security, "payload of its load server was received for " + quiet + ", or"},
		{udpCode + "/message.go", "after " + quiet + " ends the session"},
		{udpCode + "/message.go", "nothing at all, for " + quiet + " ends the run"},
		{metrics, "did not run for " + paused},
		{metrics, "or for " + say(t, inWords, span(t, loadServer, "idleTime")) + " without traffic"},
		{"grafana-dashboards/dashboards/path.json", "within the last " + say(t, words, ledger.UpIntervals) + " intervals"},
		{"grafana-dashboards/dashboards/buffer_sweep.json", count("fewer than %d repetitions", "exporter/probes/tcpsweep", "fewest")},
		{"deploy/prometheus/alertmanager.yml", fmt.Sprintf("and %.0f minutes after", metric.TestedRecent.Minutes())},
		{"exporter/doc/decisions/0016-links-of-paths.md", fmt.Sprintf("the maximum of %.0f minutes", metric.TestedRecent.Minutes())},

		{alerts, say(t, inWords, rules.HeldFor) + " buffers of sockets"},
		{alerts, say(t, inWords, rules.HeldFor) + " the runs of"},
		{alerts, say(t, inWords, rules.HeldFor) + " no run of"},
		{pathAlerts, fmt.Sprintf("for %.0f minutes without a load test", rules.BadCallsFor.Minutes())},
		{pathAlerts, say(t, inWords, time.Duration(rules.ThresholdBaselineHours.Default)*time.Hour) + " of history, has an absolute limit"},
		{pathAlerts, "of a path without " + say(t, inWords, time.Duration(rules.ThresholdBaselineHours.Default)*time.Hour) + " of history"},
		{pathAlerts, "a baseline needs " + say(t, inWords, time.Duration(rules.ThresholdBaselineHours.Default)*time.Hour) + " of history"},
		{runbooks + "OnewayDelayBlowUp.md", "without " + say(t, inWords, time.Duration(rules.ThresholdBaselineHours.Default)*time.Hour) + " of history has no baseline"},
		{pathAlerts, "only of a bound above " + hour + ", which is no information"},
		{pathAlerts, "their error bound is above max_bound, or above " + hour},
		{runbooks + "OnewayDelayBoundAboveLimit.md", "their bound is above `max_bound`, or above " + hour},
		{runbooks + "OnewayDelayBoundAboveLimit.md", "or above " + hour + ". The description"},
		{"exporter/probes/stamp/terminal.go", "an error bound above " + strings.Replace(hour, "an ", "one ", 1) + " or below zero"},
		{runbooks + "OnewayRoundTripLoss.md", fmt.Sprintf("More than %.0f %% of the packets of the last 5 minutes, or of the last hour, are undecided", 100*(1-number(t, "exporter/core/rules", "knownShare")))},
		{"deploy/prometheus/README.md", fmt.Sprintf("`oneway:threshold:delay_seconds` (%g ms;", 1000*rules.ThresholdDelaySeconds.Default)},
		{meshDoc, "`self` | the name of this host in the file. `" + meshed["self"] + "` (default)"},
		{"exporter/doc/decisions/0008-link-given-back.md", fmt.Sprintf("at most `max_wait` (%s)", strings.Replace(defaults(&loadtest.Options{})["max_wait"], "m", " minutes", 1))},
		{meshDoc, "| `shape` | `" + meshed["shape"] + "` (default), `ring`, `neighbors`, `site` |"},
		{alerts, "is old after " + say(t, map[float64]string{1.5: "one and a half"}, rules.RecentIntervals) + " intervals"},
		{alerts, say(t, map[int]string{3: "Three"}, rules.WorkingDelayRuns) + " completed runs one after the other"},
		{"deploy/prometheus/rules/oneway-recording.yml", fmt.Sprintf("more than %.0f %% of the packets sent have no outcome", 100*(1-number(t, "exporter/core/rules", "knownShare")))},
		{alerts, "Where " + say(t, map[float64]string{0.25: "a quarter"}, 1-metric.SilencedRatio) + " of the time is left"},

		{meshDoc, count("at most %d labels", labels, "MaxLabels")},
		{meshDoc, count("at most %d names", labels, "MaxNames")},
		{meshDoc, count("a value %d characters", labels, "MaxRunes")},
		{meshDoc, fmt.Sprintf("limited to %d MiB", int(number(t, "exporter/agent/config", "maxFileBytes"))>>20)},
		{"exporter/serve/runbook/OnewayAlertsSilenced.md", fmt.Sprintf("leave %.0f minutes between", metric.QuietTime.Minutes())},
		{"deploy/prometheus/README.md", fmt.Sprintf("leave %.0f minutes between", metric.QuietTime.Minutes())},
		{"exporter/serve/runbook/OnewayAlertsSilenced.md", fmt.Sprintf("--since -%.0fh", span(t, "exporter/core/rules", "silencedTime").Hours())},
		{"exporter/serve/runbook/OnewayRunsFailing.md", "More than half of the due load tests were " + unit.List("or", runreason.Failures()...) + "."},
		{"exporter/serve/runbook/OnewayRunsFailing.md", "at least two, were " + unit.List("or", runreason.Failures()...) + ", within"},
		{security, fmt.Sprintf("at most %.0f MiB of the report, decompressed, and draws at most %s points", number(t, "exporter/probe/report", "maxViewBytes")/(1<<20), thousands(int(number(t, "exporter/probe/report", "maxAll"))))},
		{security, "bursts are " + say(t, map[float64]string{0.1: "a tenth"}, number(t, "exporter/load/loadcontrol", "burstSeconds")) + " of a second of it"},
		{metrics, "loss timeout (drain_timeout, at most " + say(t, inWords, span(t, "exporter/load/loadtest", "maxLossTimeout")) + ")"},
		{security, fmt.Sprintf("least %.0f KiB", number(t, "exporter/load/loadcontrol", "MinBurstBytes")/(1<<10))},
		{metrics, "the error bound exceeds " + say(t, map[float64]string{0.1: "a tenth"}, number(t, "exporter/estimate/capacity", "maxBound")) + " of the rate"},
		{metrics, "the error bound exceeds " + say(t, map[float64]string{0.1: "a tenth"}, number(t, "exporter/estimate/capacity", "maxBound")) + " of the burst"},
		{runbooks + "OnewayOutputDropping.md", "has its message, at most once " + say(t, inWords, span(t, influx, "refusalInterval"))},
		{metrics, "by more than the bound of the clocks and " + part("exporter/estimate/delay", "tolerated") + " of the median"},
		{"exporter/estimate/working/working.go", part("exporter/estimate/delay", "tolerated") + " of the median"},
		{"exporter/probes/tcpsweep/terminal.go", fmt.Sprintf("reaches %.0f %% of the", 100*tcpstate.KneeShare)},
		{"grafana-dashboards/buffer_sweep.go", fmt.Sprintf("reaches %.0f %% of the best", 100*tcpstate.KneeShare)},
		{metrics, "with each " + say(t, map[int]string{8: "eighth"}, int(number(t, reflector, "hostEvery"))) + " reply"},
		{metrics, fmt.Sprintf("The report of the run has %d bins", queue.MaxBins)},
		{metrics, "or " + say(t, words, int(number(t, "exporter/probes/stamp/ledger", "agreeing"))) + " replies in a row have numbers above"},
		{runbooks + "OnewayAlertsSilenced.md", "For " + say(t, map[float64]string{0.75: "three quarters"}, metric.SilencedRatio) + " of " + say(t, map[time.Duration]string{6 * time.Hour: "six hours"}, span(t, "exporter/core/rules", "silencedTime"))},
		{"exporter/serve/runbook/OnewayRunResultStale.md", fmt.Sprintf("in the last %.0f hours", span(t, "exporter/core/rules", "missedTime").Hours())},
	} {
		if text := strings.Join(strings.Fields(comments.Replace(read(t, filepath.Join(root, c.file)))), " "); !strings.Contains(text, c.text) {
			t.Errorf("%s has no %q", c.file, c.text)
		}
	}
}

func milliseconds(t *testing.T, directory, name string) float64 {
	return span(t, directory, name).Seconds() * 1e3
}

// thousands writes a number of five or six digits with a comma.
func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

func minutes(d time.Duration) string { return fmt.Sprintf("%.0f min", d.Minutes()) }
