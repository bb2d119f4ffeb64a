// Package relay runs tasks of type "claude_relay", which send messages to agent sessions that are alive on the node and
// kept by activities/executor/relay/session. It may import proto and activities/executor.
package relay
