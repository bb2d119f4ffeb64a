// Package relay runs tasks of type "claude_relay": messages to sessions of agents that are alive on the node, which
// activities/executor/relay/session keeps. It may import proto and activities/executor.
package relay
