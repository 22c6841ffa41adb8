import { copyFile, mkdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { CliFailure, usageFailure } from '../failure.js'
import { programFile } from '../program-file.js'
import { askedBy, targetOf } from '../client/target.js'
import { removeAccess, writeAccess } from './access-files.js'
import { JOB_NAME, MARK, systemdUnit, sysusersFile, UNIT_NAME, type GatewayUnit } from './gateway-unit.js'
import { launchdPlist, loadJob, requireUser } from './launchd.js'
import { removeOurs, requireOurs, run, writeOurs, type Place } from './machine.js'
import { COMPANION_UNITS, isUnitName } from './unit-access.js'

export interface GatewayServiceOptions {
  readonly print?: true
  /** Default: `svc`; on macOS, where no user is made, the account that called sudo. */
  readonly user?: string
  /** Further units that it may start and stop. */
  readonly allow?: readonly string[]
  readonly folder?: string
}

const LAUNCHER = 'launch.mjs'
/** As the bundle has it, beside the program. */
const ownLauncher = join(dirname(programFile), 'plugins/services/updates/launcher/launch.js')

const isMac = process.platform === 'darwin'
const WANTED_GROUPS = ['docker', 'podman', 'video', 'render', 'accel', 'systemd-journal']

/** Makes the gateway a service of this machine: writes its files, and has it started where an init system answers. */
export async function installGateway (cli: Cli, command: Command, options: GatewayServiceOptions): Promise<void> {
  const { print, folder, user = (isMac ? cli.env.SUDO_USER : undefined) ?? 'svc', allow = [] } = options
  const odd = allow.find(name => !isUnitName(name))
  if (odd !== undefined) throw usageFailure(`--allow takes the name of a .service unit, and '${odd}' is not one`)
  const target = targetOf(askedBy(command, cli.env))
  const home = target.kind === 'home' && target.home !== null ? resolve(cli.process.cwd(), target.home) : null
  const releases = await releasesFolder()
  const unit: GatewayUnit = {
    node: process.execPath,
    program: releases === null ? await realpath(programFile) : join(releases, LAUNCHER),
    releases,
    home,
    user,
    groups: isMac ? [] : await knownGroups(),
    path: `${isMac ? '/opt/homebrew/bin:' : ''}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`
  }
  const place = placeOf(unit, folder)
  if (print === true) return cli.out.lines(place.text.trimEnd().split('\n'))
  requireRoot(folder)
  if (isMac && folder === undefined) await requireUser(user)
  if (releases !== null) await copyFile(ownLauncher, join(releases, LAUNCHER))
  await writeOurs(place)
  cli.out.line(`${place.file} is written.`)
  if (folder !== undefined) return
  if (!isMac && !await isUser(user)) await makeUser(cli, user)
  for (const path of home === null ? ['/etc/svc', '/var/lib/svc'] : [join(home, 'etc/svc'), join(home, 'var/lib/svc')]) {
    await mkdir(path, { recursive: true, mode: 0o750 })
    await run('chown', ['-R', `${user}:`, path])
  }
  // it writes the trees of newer releases there, and the link to the one in use
  if (releases !== null) await run('chown', ['-R', `${user}:`, releases])
  if (isMac) return await loadJob(cli, unit, place.file)
  const why = await writeAccess(user, [...new Set([...COMPANION_UNITS, ...allow])], unit.path)
  if (why !== null) cli.out.line(`${why[0]!.toUpperCase()}${why.slice(1)}.`)
  if (!(await run('systemctl', ['daemon-reload'])).ok) {
    cli.out.line('systemd does not answer here; run it where it does: systemctl daemon-reload && systemctl enable --now svc-api')
    return
  }
  // one that runs already goes on as it was started
  const { ok, said } = await systemctl(['enable', UNIT_NAME], ['restart', UNIT_NAME])
  if (!ok) throw new CliFailure(`${UNIT_NAME} is installed but does not start: ${said}`, { hints: [`journalctl -u ${UNIT_NAME} says why.`] })
  cli.out.line('The gateway runs as svc-api and starts with the machine: systemctl status svc-api')
}

async function systemctl (...orders: ReadonlyArray<readonly string[]>): ReturnType<typeof run> {
  let done = { ok: true, said: '' } as Awaited<ReturnType<typeof run>>
  for (const order of orders) if (done.ok) done = await run('systemctl', order)
  return done
}

/** Where this program is one of the releases beside each other that `current` leads to; null for any other installation. */
async function releasesFolder (): Promise<string | null> {
  const tree = resolve(await realpath(programFile), '../../..')
  const current = await realpath(join(dirname(tree), 'current')).catch(() => null)
  return current === tree ? dirname(tree) : null
}

/** Ends the service and takes its files away. The home stays. */
export async function uninstallGateway (cli: Cli, { folder }: Pick<GatewayServiceOptions, 'folder'>): Promise<void> {
  requireRoot(folder)
  const file = fileOf(folder)
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null) throw new CliFailure(`the gateway is not installed as a service: ${file} does not exist`)
  requireOurs(file, text)
  if (folder === undefined) {
    if (isMac) await run('launchctl', ['bootout', `system/${JOB_NAME}`])
    else await run('systemctl', ['disable', '--now', UNIT_NAME])
  }
  await removeOurs(file)
  if (folder === undefined && !isMac) {
    await removeAccess()
    await removeOurs(SYSUSERS)
    await run('systemctl', ['daemon-reload'])
  }
  cli.out.line(`${file} is removed; configuration, models and the user stay.`)
}

const SYSUSERS = '/etc/sysusers.d/svc.conf'

function placeOf (unit: GatewayUnit, folder: string | undefined): Place {
  return { file: fileOf(folder), text: isMac ? launchdPlist(unit, MARK) : systemdUnit(unit) }
}

function fileOf (folder: string | undefined): string {
  return isMac ? join(folder ?? '/Library/LaunchDaemons', `${JOB_NAME}.plist`) : join(folder ?? '/etc/systemd/system', UNIT_NAME)
}

function requireRoot (folder: string | undefined): void {
  if (folder !== undefined || process.getuid?.() === 0) return
  throw new CliFailure('installing a service of the machine requires root', { hints: ['Run it with sudo, or preview it: svc service install --print'] })
}

async function makeUser (cli: Cli, user: string): Promise<void> {
  await writeOurs({ file: SYSUSERS, text: sysusersFile(user) })
  const made = await run('systemd-sysusers', [SYSUSERS])
  if (!made.ok) throw new CliFailure(`user ${user} cannot be created: ${made.said}`, { hints: [`Create it, or choose another one with --user.`] })
  cli.out.line(`User ${user} is created.`)
}

async function knownGroups (): Promise<readonly string[]> {
  const text = await readFile('/etc/group', 'utf8').catch(() => '')
  const there = new Set(text.split('\n').map(line => line.split(':', 1)[0]))
  return WANTED_GROUPS.filter(name => there.has(name))
}

async function isUser (user: string): Promise<boolean> {
  return (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n').some(line => line.startsWith(`${user}:`))
}
