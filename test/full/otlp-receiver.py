"""Takes OTLP/HTTP in JSON with OpenTelemetry's own classes, strictly, and prints each request as they understood it."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)


def attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def number_point(point):
    return {
        "attributes": attributes(point.attributes),
        "value": str(getattr(point, point.WhichOneof("value"))),
        "start": point.start_time_unix_nano,
        "time": point.time_unix_nano,
    }


def histogram_point(point):
    return {
        "attributes": attributes(point.attributes),
        "count": point.count,
        "sum": point.sum,
        "counts": list(point.bucket_counts),
        "bounds": list(point.explicit_bounds),
    }


def understood(request):
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                yield {
                    "resource": attributes(resource.resource.attributes),
                    "name": metric.name,
                    "unit": metric.unit,
                    "kind": kind,
                    "monotonic": getattr(data, "is_monotonic", None),
                    "temporality": getattr(data, "aggregation_temporality", None),
                    "points": [(histogram_point if kind == "histogram" else number_point)(point) for point in data.data_points],
                }


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            request = json_format.Parse(body, ExportMetricsServiceRequest(), ignore_unknown_fields=False)
            print(json.dumps({"metrics": list(understood(request))}), flush=True)
            status, answer = 200, json_format.MessageToJson(ExportMetricsServiceResponse())
        except json_format.ParseError as error:
            print(json.dumps({"refused": str(error)}), flush=True)
            status, answer = 400, "{}"
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(json.dumps({"port": server.server_port}), flush=True)
server.serve_forever()
