import { svcError } from '../../contract/index.js'
import { isAlive, nameOf, type PluginRecord } from '../record/record.js'

/** Throws `plugin.unavailable` when one of these plugins is not active, or none is. */
export function assertRequired (records: readonly PluginRecord[], required: readonly string[]): void {
  const fallen = required.flatMap(name => {
    const record = records.find(candidate => nameOf(candidate) === name)
    return record !== undefined && isAlive(record) ? [] : [`${name}: ${record?.message ?? 'no such plugin'}`]
  })
  if (fallen.length > 0) throw svcError('plugin.unavailable', `required plugins are not active: ${fallen.join('; ')}`)
  if (records.length === 0 || records.some(isAlive)) return
  const reasons = records.map(record => `${nameOf(record)}: ${record.message ?? ''}`)
  throw svcError('plugin.unavailable', `no plugin is active: ${reasons.join('; ')}`)
}
