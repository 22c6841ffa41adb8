/** Whether a completion is to end where another text begins. Bodies without the word are not parsed. Pure. */
export function hasSuffix (body: Buffer): boolean {
  if (!body.includes('"suffix"')) return false
  try {
    const { suffix } = JSON.parse(body.toString('utf8')) as { readonly suffix?: unknown }
    return suffix !== undefined && suffix !== null && suffix !== ''
  } catch {
    // what is wrong with it is said by the dispatcher
    return false
  }
}
