import { svcError, type SvcError } from '../errors/errors.js'

/** @param fields what the form has to hold, in words */
export function notAForm (contentType: string | undefined, fields = ''): SvcError {
  const isForm = /^\s*multipart\/form-data/i.test(contentType ?? '')
  return isForm
    ? invalidForm('its content type has no usable `boundary`; let the HTTP client set it')
    : svcError('request.unsupported_media_type', `send multipart/form-data${fields}, not ${contentType?.slice(0, 100) ?? 'a body without content type'}`)
}

export function invalidForm (problem: string): SvcError {
  return svcError('request.invalid_form', `the form cannot be read: ${problem}`)
}
