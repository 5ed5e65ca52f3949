/** All error codes of the server. A code never changes its meaning; messages may. */
export const ERRORS = {
  malformed_request: { status: 400, meaning: 'The Host header is malformed.' },
  missing_parameter: { status: 400, meaning: 'A required query parameter is missing.' },
  unknown_parameter: { status: 400, meaning: 'This route has no such query parameter.' },
  invalid_parameter: { status: 400, meaning: 'A query parameter has an invalid value.' },
  invalid_gpu: { status: 400, meaning: 'The parameter names no GPU of this host.' },
  invalid_field: { status: 400, meaning: 'The parameter names no reading of a GPU or of a run.' },
  invalid_time: { status: 400, meaning: 'A time is neither epoch milliseconds, nor ISO 8601, nor relative.' },
  invalid_range: { status: 400, meaning: '`from` is not before `to`.' },
  invalid_step: { status: 400, meaning: '`step` is not a number of seconds, or too small for the range.' },
  invalid_body: { status: 400, meaning: 'The body does not match this route.' },
  missing_token: { status: 401, meaning: 'A token is configured and the request has none.' },
  wrong_token: { status: 401, meaning: 'The token of the request is not the configured one.' },
  forbidden_host: { status: 403, meaning: 'The Host header names another host (protection against DNS rebinding).' },
  cross_site: { status: 403, meaning: 'A page of another site made the request.' },
  kill_disabled: { status: 403, meaning: 'Signaling processes is off, or no token is configured.' },
  not_permitted: { status: 403, meaning: 'The agent may not do this: the process belongs to another user, or is the agent.' },
  not_found: { status: 404, meaning: 'There is no such path.' },
  unknown_gpu: { status: 404, meaning: 'There is no such GPU on this host.' },
  unknown_run: { status: 404, meaning: 'There is no such training run.' },
  unknown_alert: { status: 404, meaning: 'There is no such alert, or it is resolved.' },
  unknown_silence: { status: 404, meaning: 'There is no such silence.' },
  unknown_process: { status: 404, meaning: 'There is no such process on a GPU now.' },
  unknown_snapshot: { status: 404, meaning: 'There is no such memory snapshot.' },
  unknown_session: { status: 404, meaning: 'There is no such memory session, or nobody asked for it for 15 s.' },
  unknown_channel: { status: 404, meaning: 'There is no such channel.' },
  method_not_allowed: { status: 405, meaning: 'The path exists, with other methods; see the Allow header.' },
  no_log: { status: 409, meaning: 'There is no log for this.' },
  conflict: { status: 409, meaning: 'The request conflicts with the current state.' },
  process_changed: { status: 409, meaning: 'The PID does not belong to the given process, or not anymore.' },
  body_too_large: { status: 413, meaning: 'The body is larger than this route takes.' },
  unsupported_media_type: { status: 415, meaning: 'The type or encoding of the body is not supported.' },
  too_many_attempts: { status: 429, meaning: 'Too many wrong tokens from this address; wait as long as Retry-After says.' },
  too_many_requests: { status: 429, meaning: 'More requests than this route takes; wait as long as Retry-After says.' },
  internal: { status: 500, meaning: 'A bug in gpuwarden; its log has the request id.' },
  too_many_clients: { status: 503, meaning: 'The live stream has the maximum number of clients.' },
  unavailable: { status: 503, meaning: 'Not possible now; try again.' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly meaning: string }>>

export type ErrorCode = keyof typeof ERRORS

export interface ErrorBody {
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly hint: string | null }
}

export function errorBody(code: ErrorCode, message: string, hint: string | null = null): ErrorBody {
  return { error: { code, message, hint } }
}
