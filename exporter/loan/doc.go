// Package loan lends an agent's links to the heavy tests that people start from a terminal
// of the same host. The agent is a Server at a UNIX socket; `oneway test` is its client
// (Dial).
//
// One connection is one loan: the test says what it will fill, waits for the link, sets
// octets of the budget aside, says when it sends, and settles with what it has sent. The
// loan ends with the connection, whichever end closes it or dies: the link is free then,
// and where a test that had begun to send has not told how much, all that was set aside
// counts as used. The agent's configuration may be reloaded meanwhile.
//
// Messages are lines of JSON, one object each, a request and its replies in turn. Who may
// ask is who may write to the socket: its owner and root, and one group if there is one.
package loan
