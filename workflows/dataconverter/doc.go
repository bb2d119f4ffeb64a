// Package dataconverter has the data converter with which Switchyard reads and writes the payloads of Temporal. It imports nothing
// of this module.
package dataconverter
