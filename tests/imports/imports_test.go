// Package imports checks the structure of the repository: the imports of each package, the entries of the registries,
// and what the documents state about both.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "oneway.example/exporter/"

// room is what the packages of a directory of exporter/ may import of other rooms.
type room struct {
	may []string
	why string
}

// rooms are the direction of imports of ARCHITECTURE.md. A directory without a room fails the test: decide its place
// before it grows.
var rooms = map[string]room{
	"core":      {nil, "values, settings and files that all packages share"},
	"estimate":  {[]string{"core"}, "math over samples"},
	"net":       {[]string{"core"}, "sockets, wire formats and schedules; no measurement"},
	"clock":     {[]string{"core", "net"}, "what a clock source is, and the steps of a clock"},
	"clocks":    {[]string{"clock", "core"}, "the clock sources and their registry"},
	"watcher":   {[]string{"core"}, "what a watcher is"},
	"watchers":  {[]string{"core", "estimate", "watcher"}, "the watchers and their registry; no probe"},
	"output":    {[]string{"core"}, "what an output is, and points of series and raw samples; no store"},
	"outputs":   {[]string{"core", "output"}, "the outputs and their registry"},
	"probe":     {[]string{"clock", "core", "estimate", "net"}, "what a probe is, and what probes share; no concrete probe"},
	"reflector": {[]string{"clock", "core", "estimate", "net"}, "the remote end of light probes"},
	"load":      {[]string{"clock", "core", "estimate", "net", "probe", "reflector"}, "runs of load tests, and the load server; no concrete probe"},
	"probes":    {[]string{"clock", "core", "estimate", "load", "net", "probe"}, "the probes and their registry"},
	"agent":     {[]string{"clock", "core", "estimate", "load", "net", "output", "probe", "reflector", "watcher"}, "no member of a registry, no HTTP"},
	"families":  {[]string{"agent", "clocks", "core", "load", "outputs", "probes", "watchers"}, "the types of all registries and their metric families"},
	"doc":       {[]string{"core", "output"}, "documents that are generated"},
	"serve":     {[]string{"agent", "core", "doc", "estimate", "probe", "watcher"}, "the agent's data over HTTP, and reports of stored data"},
	"cmd":       {[]string{"agent", "clock", "clocks", "core", "estimate", "families", "load", "net", "output", "probe", "probes", "reflector", "serve"}, "joins everything"},
}

// exceptions are single imports that the rule of the room forbids.
var exceptions = map[string][]string{
	"agent/backtoback":  {"probes/stamp"},  // runs both ends of a probe
	"serve/httpd":       {"net/relisten"},  // a listener, no measurement
	"load/loadtesttest": {"clocks/static"}, // both ends of a load test, for tests
	"doc/metricdoc":     {"families"},      // describes the families of all types
	// lists the options of all of them in the commented configuration
	"doc/configdoc": {"agent", "agent/config", "clocks", "outputs", "probe", "probes", "watchers"},
}

// boundaries are the rules inside a room: a package of from imports no package of to.
var boundaries = []struct {
	from, to []string
	why      string
}{
	{[]string{"core/instant", "core/hostid", "core/localzone", "core/textfile", "core/hostport", "core/ipheader", "core/atomicfile", "core/ctxtime"}, []string{""}, "imports no package of this module"},
	{[]string{"output/spool"}, []string{""}, "a bounded queue on disk, which does not know its content"},
	{[]string{"core"}, []string{"core/metric/metrictest"}, "only tests import it"},
	{[]string{"agent", "load", "probe", "probes", "reflector", "watchers"}, []string{"core/rules"}, "Prometheus evaluates the rules, not the agent"},
	{[]string{"net/wire"}, []string{"net/tstamp", "net/tcpsocket", "net/sched", "core/metric"}, "wire formats are bytes"},
	{[]string{"net/tstamp", "net/tcpsocket"}, []string{"net/wire", "net/sched", "core/metric"}, "sockets know no protocol; their users publish their counts"},
	{[]string{"estimate"}, []string{"core/metric", "core/option"}, "estimators know no backend and no settings"},
	{[]string{"load/loadcontrol"}, []string{"core/metric", "core/sample", "load"}, "the protocol of both ends does not decode the messages of a traffic type"},
	{[]string{"load/stream"}, []string{"load", "core/metric"}, "streams of test packets; no session, no limit"},
	{[]string{"load/traffic"}, []string{"load/traffictypes", "load/loadserver", "load/loadtest", "load/loadsession"}, "what a type of traffic is"},
	{[]string{"load/loadserver"}, []string{"load/traffictypes", "load/loadtest", "load/loadsession", "estimate"}, "a type of traffic is passed to the server"},
	{[]string{"load/loadtest"}, []string{"load"}, "a run does not depend on the way in which it is performed"},
	{[]string{"load/loadsession"}, []string{"load/traffictypes", "load/loadserver", "load/stream", "load/traffic"}, "a session does not depend on a type of traffic"},
	{[]string{"load/traffictypes"}, []string{"load/loadserver", "estimate"}, "traffic types join the records of both ends; the probe evaluates them"},
	{[]string{"probes/stamp/ledger"}, []string{"estimate/delay", "estimate/feasible", "estimate/voice", "core/metric", "probe", "probes"}, "the ledger decides about packets; an estimator takes its verdicts"},
	{[]string{"agent"}, []string{"load/traffictypes"}, "cmd passes the types of traffic"},
	{[]string{"probe/quota", "probe/calendar"}, []string{"core/metric"}, "a quota is told by who uses it"},
	{[]string{"probe/quota", "probe/link", "probe/calendar"}, []string{"net"}, "a quota counts bytes and does not transfer them"},
}

// permissions are the permitted imports of rooms, each written "from -> to".
func permissions() map[string]bool {
	all := map[string]bool{}
	for place, r := range rooms {
		for _, other := range r.may {
			all[place+" -> "+other] = true
		}
	}
	for from, to := range exceptions {
		for _, dep := range to {
			all[from+" -> "+dep] = true
		}
	}
	return all
}

// TestImportsGoInOneDirection compares the imports with the permissions: each import has one, and each is needed.
func TestImportsGoInOneDirection(t *testing.T) {
	unused := permissions()
	for _, p := range packages(t) {
		name, own := strings.CutPrefix(p.ImportPath, module)
		if !own {
			continue
		}
		place, _, _ := strings.Cut(name, "/")
		r, found := rooms[place]
		if !found {
			t.Errorf("%s is in no room; add its directory to rooms with its imports and the reason", name)
			continue
		}
		for _, imported := range p.Imports {
			dep, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			if slices.Contains(exceptions[name], dep) {
				delete(unused, name+" -> "+dep)
				continue
			}
			other, _, _ := strings.Cut(dep, "/")
			delete(unused, place+" -> "+other)
			if other != place && !slices.Contains(r.may, other) {
				t.Errorf("%s (%s) imports %s", name, r.why, dep)
			}
			for _, b := range boundaries {
				if below(name, b.from) && below(dep, b.to) && (!below(dep, b.from) || b.to[0] == "") {
					t.Errorf("%s imports %s: %s", name, dep, b.why)
				}
			}
		}
	}
	for permission := range unused {
		t.Errorf("%s is permitted, and no package does it: remove the permission", permission)
	}
}

// TestPackageNamesAreUnique: a name that two packages share needs an alias where both are imported.
func TestPackageNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, p := range packages(t) {
		if first, twice := seen[p.Name]; twice && p.Name != "main" {
			t.Errorf("%s and %s are both named %s", first, p.ImportPath, p.Name)
		}
		seen[p.Name] = p.ImportPath
	}
}

// below reports whether a package is one of the directories or below one; "" contains all, and a name with a slash at
// its end only what is below.
func below(name string, directories []string) bool {
	for _, d := range directories {
		if d == "" || name == d || strings.HasPrefix(name, strings.TrimSuffix(d, "/")+"/") {
			return true
		}
	}
	return false
}

type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
}

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Imports", module+"...").Output()
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
