// Package dataconverter has the data converter with which Switchyard reads and writes the payloads of Temporal.
//
// Programs of two releases share a fleet, so a message may have fields that its reader does not know. The reader ignores them. An
// exception is the input and the state of a run, because a run without a part of its definition would do something else. The workflow
// task of such a run fails, and Temporal repeats it until a newer process takes it. The same happens to a payload with a data level
// that the reader does not understand.
//
// Of this module it may import proto.
package dataconverter
