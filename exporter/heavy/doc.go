// Package heavy is what all tests that fill a link have in common: when they may run,
// the link and the data budget they need for it, the session with the responder at the
// far end, the streams of both directions with their delays, the report and the metrics
// about runs. What is sent, and what is found in it, is a Kind's.
//
//	calendar -> link (sched.Links) -> budget -> dial, open, prove the address
//	  -> Kind.Perform (Session.Transfer, again and again) -> Kind.Publish -> report
//
// Where another process of the host keeps links and budgets, a Lender lends them.
//
// A run never starts outside its calendar, nor without its link and its budget; it
// always ends, and the budget is then settled with what was really sent. Each run that
// was due is counted once, whatever became of it (metric.Runs).
package heavy
