// Package model asks language models for replies. [New] returns a client of a provider: "anthropic" speaks the Messages
// API, "openai" the Chat Completions API of any server. Both stream, by the official clients, and read nothing from the
// environment.
//
// A client sends one request and retries nothing: it returns a whole [Reply], or an [*Error] whose kind tells the caller
// whether the request may be sent again. A reply is whole once the provider has named the reason for its end, because the
// official clients report no error for a stream that ends early. A [Message] survives a round trip through JSON, so
// a conversation can be recorded and continued elsewhere.
//
// A reply is bounded: so many bytes on the wire, so much text, and so much silence. No error contains the key.
//
// [LoadPrices] returns what models cost.
//
// It may import the official clients and the standard library.
package model
