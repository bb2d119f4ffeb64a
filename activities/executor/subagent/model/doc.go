// Package model requests replies from language models. [New] returns a client for a provider: "anthropic" speaks the
// Messages API, "openai" the Chat Completions API of any server. Both stream with the official clients, and read
// nothing from the environment.
//
// A client sends one request and retries nothing: it returns a complete [Reply], or an [*Error] whose kind tells the
// caller whether the request may be sent again. A reply is complete once the provider has sent a stop reason, because
// the official clients report no error for a stream that ends early. A [Message] survives a round trip through JSON, so
// that a conversation can be recorded and continued elsewhere.
//
// Every reply is bounded in its bytes on the wire, its text, and the provider's silence. No error contains the key.
//
// [LoadPrices] returns the prices of models.
//
// It may import the official clients and the standard library.
package model
