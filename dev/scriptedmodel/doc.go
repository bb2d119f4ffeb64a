// Package scriptedmodel serves a language model that follows a script. It needs no key and no network beyond loopback,
// so tests and examples of agents are repeatable and cost nothing.
//
// [New] returns an http.Handler with two paths, each with and without streaming:
//
//   - POST /v1/messages, the Anthropic Messages API;
//   - POST /v1/chat/completions, the OpenAI Chat Completions API.
//
// A [Script] is one list of rules. The first rule that matches a request decides the reply, and a rule without `when`
// is the default. [Parse] reads a script from YAML or JSON:
//
//	key: secret                    # optional; other keys get status 401
//	rules:
//	  - name: ask the tool
//	    when: { user: weather, turns: 0 }
//	    reply:
//	      text: Let me see.
//	      toolCalls: [{ name: forecast, arguments: { city: Oslo } }]
//	    fault: { times: 1, status: 429, retryAfter: 1s }
//	  - name: read the result
//	    when: { toolResult: forecast, toolResultText: rain }
//	    pace: { chunkDelay: 50ms, chunkSize: 4 }
//	    reply: { thinking: Rain means yes., text: It rains in Oslo., usage: { input: 40, output: 5 } }
//	  - reply: { text: I can only talk about the weather. }
//
// All conditions of a rule must hold; [When] lists them. Thinking is for the Messages API only, which refuses a conversation
// whose thinking has changed.
//
// A [Fault] makes a rule misbehave, always or a limited number of times: it refuses, is slow, or breaks the reply in the
// middle. The server records every request with its [Outcome], so a test can count turns that were paid for twice.
//
// It may import nothing of this module, and none of the official clients, which its tests drive it with.
package scriptedmodel
