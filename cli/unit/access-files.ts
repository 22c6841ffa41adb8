import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { UNIT_NAME } from './gateway-unit.js'
import { removeOurs, writeOurs } from './machine.js'
import { polkitRule, SWITCHES, switchTemplate, switchUnit } from './unit-access.js'

const RULES = '/etc/polkit-1/rules.d'
const RULE = join(RULES, '50-svc-gateway.rules')
const templateOf = (verb: typeof SWITCHES[number]): string => join('/etc/systemd/system', switchUnit(verb))
/** All that lets the gateway's user drive units. */
export const accessFiles: readonly string[] = [RULE, ...SWITCHES.map(templateOf)]

/**
 * Lets the gateway's user drive these units. Null, or why it cannot: what runs as root, or a machine without polkit, has
 * or needs no rule.
 */
export async function writeAccess (user: string, units: readonly string[], path: string): Promise<string | null> {
  if (user === 'root') return null
  if (!await isThere(RULES)) return 'polkit on this machine does not read rules, so only root can start and stop units of services'
  const systemctl = await firstOf('systemctl', path)
  for (const verb of SWITCHES) await writeOurs({ file: templateOf(verb), text: switchTemplate(verb, systemctl) })
  // polkit follows the folder by itself
  await writeOurs({ file: RULE, text: polkitRule(user, UNIT_NAME, units) })
  return null
}

/** Takes away what `writeAccess` wrote. */
export async function removeAccess (): Promise<void> {
  for (const file of accessFiles) await removeOurs(file)
}

async function firstOf (program: string, path: string): Promise<string> {
  for (const folder of path.split(delimiter)) {
    if (await isThere(join(folder, program))) return join(folder, program)
  }
  return join('/usr/bin', program)
}

function isThere (file: string): Promise<boolean> {
  return access(file).then(() => true, () => false)
}
