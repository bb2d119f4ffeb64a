package dataconverter

import "go.temporal.io/sdk/converter"

var lenient = converter.NewCompositeDataConverter(
	converter.NewNilPayloadConverter(),
	converter.NewByteSlicePayloadConverter(),
	converter.NewProtoJSONPayloadConverterWithOptions(converter.ProtoJSONPayloadConverterOptions{AllowUnknownFields: true}),
	converter.NewProtoPayloadConverter(),
	converter.NewJSONPayloadConverter(),
)

// Lenient returns Temporal's default converter, which writes messages as readable JSON, except that it ignores fields that it does
// not know. During an upgrade, a gateway or worker receives messages of a later version, which may have more fields.
func Lenient() converter.DataConverter { return lenient }
