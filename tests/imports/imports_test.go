// Package imports checks the structure of the repository: the imports of each package, the entries of the registries,
// and what the documents state about both.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "oneway.example/exporter/"

// rule is what a package (and those below it) may import of this module.
type rule struct {
	may []string
	why string
}

// rules are the direction of imports of ARCHITECTURE.md. A package without a rule fails the test: decide its place
// before it grows.
var rules = map[string]rule{
	"instant":                {nil, "the base of all packages"},
	"hostid":                 {nil, "one file of /proc"},
	"metric":                 {nil, "names only"},
	"metric/metrictest":      {[]string{"metric"}, "a sink that remembers, for tests"},
	"keyfile":                {nil, "reads a file"},
	"hostport":               {nil, "reads a host and its port"},
	"atomicfile":             {nil, "writes a file"},
	"seqwin":                 {nil, "math over numbers"},
	"bound":                  {[]string{"sample"}, "math over one packet's bounds"},
	"ctxtime":                {nil, "a pause"},
	"sched":                  {nil, "times and tasks"},
	"calendar":               {nil, "math over local time"},
	"quota":                  {[]string{"calendar", "atomicfile"}, "the quota of a day; the caller defines its owner and size"},
	"link":                   {[]string{"quota"}, "who has a link; no knowledge of the traffic"},
	"wire/timefmt":           {[]string{"instant"}, "formats of an instant"},
	"wire/stamp":             {[]string{"instant", "sample", "wire/timefmt"}, "bytes"},
	"sample":                 {[]string{"instant"}, "one packet's truth"},
	"estimate/order":         {nil, "order statistics"},
	"estimate/delay":         {[]string{"sample", "instant"}, "math over samples"},
	"estimate/feasible":      {[]string{"instant"}, "math over delays"},
	"estimate/ppsfit":        {[]string{"instant"}, "math over pulses"},
	"estimate/queue":         {[]string{"estimate/order", "instant", "sample"}, "math over the packets of a run under load"},
	"estimate/capacity":      {[]string{"estimate/order", "instant", "sample"}, "math over trains"},
	"estimate/ratesearch":    {nil, "math over rates"},
	"estimate/loss":          {[]string{"sample", "seqwin"}, "math over counts"},
	"estimate/voice":         {[]string{"sample"}, "math over windows"},
	"estimate/working":       {[]string{"estimate/order", "estimate/voice", "instant", "record", "sample"}, "math over light packets beside a load"},
	"estimate/fairness":      {[]string{"estimate/order"}, "math over rates"},
	"estimate/tcpdelay":      {[]string{"bound", "estimate/order", "instant", "sample", "tcpstamp"}, "math over timestamps of sampled bytes"},
	"estimate/tcp":           {[]string{"estimate/order"}, "math over the samples of TCP connections"},
	"kernelcounts":           {nil, "files of /proc"},
	"memlimit":               {nil, "files of /proc and of the control groups"},
	"tcpstamp":               {[]string{"instant"}, "what both ends of a TCP stream record"},
	"tcpsocket":              {[]string{"instant", "tcpstamp"}, "one TCP socket: options, state and timestamps; no goroutine, no protocol"},
	"tstamp":                 {[]string{"instant", "kernelcounts", "sample", "tstamp"}, "sockets, no protocol"},
	"wire/load":              {nil, "bytes"},
	"stream":                 {[]string{"instant", "kernelcounts", "sample", "sched", "tstamp", "wire/load"}, "streams of test packets, sent and received; no session, no limit"},
	"loadcontrol":            {[]string{"hostport", "keyfile"}, "the protocol of both ends; no traffic, no limit"},
	"traffic":                {[]string{"clock", "loadcontrol", "sample"}, "what a type of traffic is; no type, and no load server"},
	"endclock":               {[]string{"bound", "calibration", "clock", "hostid", "instant", "sample"}, "the clocks of both ends of test traffic; no message, no type of traffic"},
	"traffic/udp":            {[]string{"bound", "clock", "endclock", "loadcontrol", "loadtest", "hostid", "instant", "metric", "option", "record", "sample", "sched", "stream", "traffic", "ctxtime"}, "streams of UDP packets, both ends' halves; no load server, no estimator"},
	"traffic/tcp":            {[]string{"bound", "clock", "ctxtime", "endclock", "hostid", "instant", "loadcontrol", "loadtest", "metric", "option", "record", "sample", "tcpsocket", "tcpstamp", "traffic"}, "bulk TCP transfers, both ends' halves; no load server, no estimator"},
	"traffic/mixed":          {[]string{"loadcontrol", "loadtest", "metric", "sample", "traffic", "traffic/tcp", "traffic/udp"}, "several types in one session, and the local half for UDP with TCP"},
	"traffictypes":           {[]string{"traffic"}, "the registry"},
	"loadserver":             {[]string{"option", "atomicfile", "clock", "loadcontrol", "keyfile", "metric", "reflector", "sample", "traffic", "link", "quota", "wire/stamp"}, "remote end of load tests, with the reflector of a session; no type of traffic, no estimator"},
	"linklease":              {[]string{"metric", "ctxtime", "link", "quota"}, "leases an agent's links; no knowledge of the traffic"},
	"record":                 {[]string{"instant", "metric", "sample"}, "raw samples; no knowledge of their source or their readers"},
	"incident":               {[]string{"estimate/order", "instant", "memlimit", "metric", "probe", "record", "report", "sample"}, "the last minutes of light packets; no concrete probe"},
	"target":                 {[]string{"hostport", "option", "probe", "ctxtime"}, "the peer of a light probe: its current address, and the route"},
	"ondemand":               {[]string{"ctxtime", "metric", "option", "probe", "target"}, "single measurements that clients request, within limits; no HTTP, no concrete probe"},
	"report":                 {[]string{"document"}, "a directory of run reports"},
	"doc/schema":             {nil, "files"},
	"document":               {nil, "what all JSON documents begin with"},
	"loadtest":               {[]string{"document", "estimate/working", "option", "record", "target", "hostport", "loadcontrol", "instant", "keyfile", "metric", "probe", "report", "sample", "ctxtime", "calendar", "link", "quota"}, "the life of a run: schedule, link, quota, session, report; no type of traffic"},
	"slareport":              {[]string{"sample"}, "figures of service agreements from the HTTP API of Prometheus; no agent"},
	"loadtest/loadtesttest":  {[]string{"clock/static", "endclock", "loadtest", "instant", "metric", "loadserver", "probe", "sample", "stream", "traffic", "traffictypes", "ctxtime", "link"}, "both ends of a load test, for tests"},
	"probes/message":         {[]string{"option", "instant", "loadcontrol", "loadtest", "metric", "probe", "probes/tcp", "report", "sample", "stream", "tcpsocket", "traffic"}, "a load-test probe"},
	"probes/saturation":      {[]string{"option", "bound", "estimate", "loadtest", "instant", "metric", "probe", "report", "sample", "stream", "traffic/udp"}, "a load-test probe"},
	"probes/sizesweep":       {[]string{"option", "estimate/order", "loadtest", "loadcontrol", "instant", "metric", "probe", "report", "sample", "stream", "traffic/udp"}, "a load-test probe"},
	"probes/tcp":             {[]string{"ctxtime", "option", "estimate", "loadtest", "metric", "probe", "record", "report", "sample", "stream", "tcpsocket", "tcpstamp", "traffic"}, "a load-test probe"},
	"probes/tcpshort":        {[]string{"option", "estimate/order", "estimate/tcp", "loadtest", "metric", "probe", "report", "sample", "tcpsocket", "traffic/tcp"}, "a load-test probe"},
	"probes/tcpsweep":        {[]string{"option", "estimate/order", "estimate/tcp", "loadcontrol", "loadtest", "metric", "probe", "probes/tcp", "report", "sample", "tcpsocket", "traffic/tcp"}, "a load-test probe, of measurements as those of tcp"},
	"probes/train":           {[]string{"option", "estimate", "loadtest", "instant", "metric", "probe", "report", "sample", "stream", "traffic/udp", "ctxtime"}, "a load-test probe"},
	"tstamp/phc":             {[]string{"bound", "clock", "instant", "ctxtime"}, "a card's clock, and steps of the system clock"},
	"clocks":                 {[]string{"clock"}, "the registry of clock sources"},
	"clock":                  {[]string{"bound", "option", "instant", "sample", "metric", "ctxtime", "wire/timefmt", "clock"}, "one clock"},
	"clock/gpsd":             {[]string{"bound", "instant", "metric", "record", "ctxtime"}, "data of gpsd; it does not discipline a clock"},
	"clock/pps":              {[]string{"estimate/ppsfit", "instant", "metric", "ctxtime"}, "the kernel's pulses, and their estimate of the clock's error"},
	"calibration":            {[]string{"atomicfile", "bound", "estimate/order", "metric", "sample"}, "a table of timestamp errors"},
	"calibration/backtoback": {[]string{"hostport", "option", "calibration", "clock", "instant", "metric", "probe", "probes/stamp", "reflector", "sample", "sched", "wire"}, "runs both ends of a probe to fill the table"},
	"probe":                  {[]string{"document", "hostport", "option", "calibration", "clock", "metric", "record", "report", "sched", "sample", "link"}, "what a probe is"},
	"config":                 {[]string{"hostport", "option"}, "sections and probes' options stay raw"},
	"pathlabel":              {[]string{"metric", "option"}, "labels of paths"},
	"mesh":                   {[]string{"config", "hostport", "option", "pathlabel"}, "paths of a list of hosts; no probe"},
	"reflector":              {[]string{"option", "clock", "hostid", "instant", "memlimit", "metric", "sample", "seqwin", "tstamp", "wire", "reflector"}, "no estimator"},
	"probes/stamp":           {[]string{"document", "option", "record", "target", "bound", "calibration", "clock", "estimate", "hostid", "instant", "keyfile", "memlimit", "metric", "probe", "sample", "sched", "seqwin", "tstamp", "ctxtime", "wire"}, "the sender"},
	"probes":                 {[]string{"probe", "probes"}, "the registry"},
	"agent":                  {[]string{"document", "output", "calibration", "clock", "clocks", "config", "loadcontrol", "incident", "metric", "ondemand", "record", "traffictypes", "option", "linklease", "probe", "sched", "reflector", "report", "loadserver", "keyfile", "ctxtime", "wire", "sample", "instant", "link", "quota", "mesh", "pathlabel"}, "no Prometheus, no HTTP, no concrete probe"},
	"option":                 {[]string{"sample"}, "what all settings have in common"},
	"promsink":               {[]string{"metric"}, "a backend"},
	"point":                  {[]string{"instant", "metric", "record", "sample"}, "points of the line protocol, from series and raw samples; no store"},
	"point/series":           {[]string{"instant", "metric", "point"}, "points of scraped families"},
	"output":                 {[]string{"instant", "metric", "point", "record"}, "what an output is"},
	"collect":                {[]string{"ctxtime", "instant", "metric", "option", "output", "point", "record"}, "points of all that an agent measures; no store"},
	"spool":                  {nil, "a bounded queue on disk; no knowledge of its content"},
	"outputs":                {[]string{"output", "outputs"}, "the registry"},
	"outputs/influxdb":       {[]string{"collect", "ctxtime", "instant", "keyfile", "metric", "option", "output", "point", "spool"}, "an output"},
	"internal/plot":          {[]string{"report"}, "draws what a report contains, of any kind"},
	"internal/httpd":         {[]string{"doc/schema", "document", "runbook", "agent", "incident", "keyfile", "ondemand", "probe", "memlimit", "metric", "clock", "sample", "reflector", "report", "internal"}, "serves the agent's data"},
	"runbook":                {nil, "text"},
	"internal":               {[]string{"metric", "point", "internal"}, "tools"},
	"cmd/oneway":             {[]string{""}, "joins everything"},
}

func TestImportsGoInOneDirection(t *testing.T) {
	for _, p := range packages(t) {
		name, own := strings.CutPrefix(p.ImportPath, module)
		if !own {
			continue
		}
		r, found := ruleOf(name)
		if !found {
			t.Errorf("%s has no rule here; add one with its imports and the reason", name)
			continue
		}
		for _, imported := range p.Imports {
			if dep, ours := strings.CutPrefix(imported, module); ours && !allowed(r.may, dep) {
				t.Errorf("%s (%s) imports %s", name, r.why, dep)
			}
		}
	}
}

func ruleOf(name string) (rule, bool) {
	for key := name; ; {
		if r, ok := rules[key]; ok {
			return r, true
		}
		cut := strings.LastIndex(key, "/")
		if cut < 0 {
			return rule{}, false
		}
		key = key[:cut]
	}
}

func allowed(may []string, dep string) bool {
	for _, m := range may {
		if m == "" || dep == m || strings.HasPrefix(dep, m+"/") {
			return true
		}
	}
	return false
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("found %d packages, want more", len(all))
	}
	return all
}
