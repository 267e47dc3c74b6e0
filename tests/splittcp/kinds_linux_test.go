package splittcp

import (
	"time"

	"oneway.example/tests/lab"
	"oneway.example/tests/middlebox"
)

// kind is a kind of path.
type kind struct {
	name string
	at   middlebox.Place
	link func() lab.Profile
	box  func(lab.TB, *middlebox.Path)
	// split is whether something splits its TCP connections.
	split bool
	// inCI: a run of every test run; the quota has the others.
	inCI bool
}

func kinds() []kind {
	none := func(lab.TB, *middlebox.Path) {}
	proxy := func(x middlebox.Proxy) func(lab.TB, *middlebox.Path) {
		return func(t lab.TB, p *middlebox.Path) { p.Split(t, x) }
	}
	keeping := middlebox.Large()
	keeping.KeepSource = true
	both := func(all ...func(lab.TB, *middlebox.Path)) func(lab.TB, *middlebox.Path) {
		return func(t lab.TB, p *middlebox.Path) {
			for _, f := range all {
				f(t, p)
			}
		}
	}
	without := func(t lab.TB, p *middlebox.Path) { p.WithoutTimestamps(t) }
	return []kind{
		{"no box", middlebox.None, plain, none, false, false},
		{"router", middlebox.Middle, plain, none, false, true},
		{"NAT", middlebox.Near, plain, func(t lab.TB, p *middlebox.Path) { p.Masquerade(t) }, false, true},
		{"SYN proxy", middlebox.Far, plain, func(t lab.TB, p *middlebox.Path) { p.ProxySYN(t, 7) }, false, false},
		{"MSS clamp", middlebox.Near, plain, func(t lab.TB, p *middlebox.Path) { p.ClampMSS(t, 1200) }, false, false},
		{"slower route for UDP", middlebox.None, slow, func(t lab.TB, p *middlebox.Path) {
			p.SeparateTCP(t, lab.Options{Profile: plain(), Seed: 2})
		}, false, false},
		{"SYN proxy with a scale of its own", middlebox.Near, plain, func(t lab.TB, p *middlebox.Path) { p.ProxySYN(t, 5) }, false, true},
		{"slower route for UDP, and such a SYN proxy", middlebox.None, slow, func(t lab.TB, p *middlebox.Path) {
			p.SeparateTCP(t, lab.Options{Profile: plain(), Seed: 2})
			p.ProxySYN(t, 5)
		}, false, false},
		{"faulty link", middlebox.None, faulty, none, false, false},
		{"no timestamps", middlebox.None, plain, without, false, false},
		{"recorded trace", middlebox.None, recorded, none, false, false},
		{"proxy with buffers near the client", middlebox.Near, plain, proxy(middlebox.Large()), true, true},
		{"proxy without buffers near the client", middlebox.Near, plain, proxy(middlebox.Small()), true, false},
		{"proxy with buffers near the server", middlebox.Far, plain, proxy(middlebox.Large()), true, false},
		{"proxy without buffers near the server", middlebox.Far, plain, proxy(middlebox.Small()), true, true},
		{"proxy between links with the client's address", middlebox.Middle, plain, proxy(keeping), true, false},
		{"proxy on a faulty link", middlebox.Near, faulty, proxy(middlebox.Small()), true, false},
		{"proxy without timestamps", middlebox.Middle, plain, both(without, proxy(middlebox.Large())), true, false},
		{"proxy and recorded trace", middlebox.Near, recorded, proxy(middlebox.Large()), true, false},
	}
}

func plain() lab.Profile {
	link := lab.Link{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 60_000}
	return lab.Profile{Name: "plain", Forward: link, Reverse: link}
}

func slow() lab.Profile {
	link := lab.Link{Rate: 20e6, Delay: 60 * time.Millisecond, Queue: 60_000}
	return lab.Profile{Name: "slow", Forward: link, Reverse: link}
}

func faulty() lab.Profile {
	link := lab.Link{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 60_000, Loss: 0.005, Reorder: 0.002, Duplicate: 0.002}
	return lab.Profile{Name: "faulty", Forward: link, Reverse: link}
}

func recorded() lab.Profile {
	p, err := lab.LoadProfile("cellular")
	if err != nil {
		panic(err) // it is part of the program
	}
	return p
}
