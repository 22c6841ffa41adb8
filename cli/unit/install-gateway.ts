import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { programFile } from '../program-file.js'
import { askedBy, targetOf } from '../target.js'
import { JOB_NAME, launchdPlist, MARK, systemdUnit, sysusersFile, UNIT_NAME, type GatewayUnit } from './gateway-unit.js'

export interface GatewayServiceOptions {
  readonly print?: true
  readonly user?: string
  readonly folder?: string
}

interface Place { readonly file: string, readonly text: string }

const LAUNCHER = 'launch.mjs'
/** As the bundle has it, beside the program. */
const ownLauncher = join(dirname(programFile), 'plugins/services/updates/launcher/launch.js')

const isMac = process.platform === 'darwin'
const WANTED_GROUPS = ['docker', 'podman', 'video', 'render', 'accel', 'systemd-journal']

/** Makes the gateway a service of this machine: writes its files, and has it started where an init system answers. */
export async function installGateway (cli: Cli, command: Command, { print, user = 'svc', folder }: GatewayServiceOptions): Promise<void> {
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
    path: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  }
  const place = placeOf(unit, folder)
  if (print === true) return cli.out.lines(place.text.trimEnd().split('\n'))
  requireRoot(folder)
  if (releases !== null) await copyFile(ownLauncher, join(releases, LAUNCHER))
  await write(place)
  cli.out.line(`${place.file} is written.`)
  if (folder !== undefined) return
  if (isMac) return await loadJob(cli, place.file)
  if (!await isUser(user)) await makeUser(cli, user)
  for (const path of home === null ? ['/etc/svc', '/var/lib/svc'] : [join(home, 'etc/svc'), join(home, 'var/lib/svc')]) {
    await mkdir(path, { recursive: true, mode: 0o750 })
    await run('chown', ['-R', `${user}:`, path])
  }
  // it writes the trees of newer releases there, and the link to the one in use
  if (releases !== null) await run('chown', ['-R', `${user}:`, releases])
  if (!(await run('systemctl', ['daemon-reload'])).ok) {
    cli.out.line('systemd does not answer here; where it does: systemctl daemon-reload && systemctl enable --now svc-api')
    return
  }
  const { ok, said } = await run('systemctl', ['enable', '--now', UNIT_NAME])
  if (!ok) throw new CliFailure(`${UNIT_NAME} is installed and does not start: ${said}`, { hints: [`journalctl -u ${UNIT_NAME} says why.`] })
  cli.out.line('The gateway runs as svc-api and starts with the machine: systemctl status svc-api')
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
  if (text === null) throw new CliFailure(`the gateway is no service of this machine: ${file} is not there`)
  requireOurs(file, text)
  if (folder === undefined) {
    if (isMac) await run('launchctl', ['bootout', `system/${JOB_NAME}`])
    else await run('systemctl', ['disable', '--now', UNIT_NAME])
  }
  await rm(file)
  if (folder === undefined && !isMac) {
    await rm(SYSUSERS, { force: true })
    await run('systemctl', ['daemon-reload'])
  }
  cli.out.line(`${file} is removed; configuration, models and the user stay.`)
}

const SYSUSERS = '/etc/sysusers.d/svc.conf'

function placeOf (unit: GatewayUnit, folder: string | undefined): Place {
  return { file: fileOf(folder), text: isMac ? launchdPlist(unit) : systemdUnit(unit) }
}

function fileOf (folder: string | undefined): string {
  return isMac ? join(folder ?? '/Library/LaunchDaemons', `${JOB_NAME}.plist`) : join(folder ?? '/etc/systemd/system', UNIT_NAME)
}

function requireRoot (folder: string | undefined): void {
  if (folder !== undefined || process.getuid?.() === 0) return
  throw new CliFailure('a service of the machine is for root to install', { hints: ['Run it with sudo, or look at it first: svc service install --print'] })
}

async function write ({ file, text }: Place): Promise<void> {
  const there = await readFile(file, 'utf8').catch(() => null)
  if (there !== null) requireOurs(file, there)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text, { mode: 0o644 })
}

/** A file that another writer made, or took over, stays as it is. */
function requireOurs (file: string, text: string): void {
  if (text.split('\n').slice(0, 2).some(line => line.includes(MARK))) return
  throw new CliFailure(`${file} was not written by this command, so it is left alone`, { hints: ['Move it away first; drop-ins beside it are the place for changes of yours.'] })
}

async function makeUser (cli: Cli, user: string): Promise<void> {
  await write({ file: SYSUSERS, text: sysusersFile(user) })
  const made = await run('systemd-sysusers', [SYSUSERS])
  if (!made.ok) throw new CliFailure(`user ${user} cannot be made: ${made.said}`, { hints: [`Make it, or name another one with --user.`] })
  cli.out.line(`User ${user} is made.`)
}

async function loadJob (cli: Cli, file: string): Promise<void> {
  await run('launchctl', ['bootout', `system/${JOB_NAME}`])
  const { ok, said } = await run('launchctl', ['bootstrap', 'system', file])
  if (!ok) throw new CliFailure(`launchd does not take ${file}: ${said}`)
  cli.out.line('The gateway runs as a job of launchd and starts with the machine.')
}

async function knownGroups (): Promise<readonly string[]> {
  const text = await readFile('/etc/group', 'utf8').catch(() => '')
  const there = new Set(text.split('\n').map(line => line.split(':', 1)[0]))
  return WANTED_GROUPS.filter(name => there.has(name))
}

async function isUser (user: string): Promise<boolean> {
  return (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n').some(line => line.startsWith(`${user}:`))
}

function run (command: string, args: readonly string[]): Promise<{ readonly ok: boolean, readonly said: string }> {
  return new Promise(resolve => {
    execFile(command, args, { timeout: 120_000 }, (error, _stdout, stderr) => {
      resolve({ ok: error === null, said: stderr.trim().split('\n').at(-1) ?? '' })
    })
  })
}
