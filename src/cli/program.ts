import { Command } from 'commander'
import { readTopicSpecs } from '../operations/topic-folder.ts'
import { configCommand } from './config-show.ts'
import type { CommandContext } from './context.ts'
import { controlCommand } from './control-command.ts'
import { createContext } from './create-context.ts'
import { deadCommand } from './dead.ts'
import { deliveriesCommand } from './deliveries.ts'
import { demoCommand } from './demo.ts'
import type { CliDeps } from './deps.ts'
import { doctorCommand } from './doctor.ts'
import { endpointsCommand } from './endpoints.ts'
import { eraseCommand } from './erase.ts'
import { jobsCommand } from './jobs.ts'
import { linesCommand } from './lines.ts'
import { listenCommand } from './listen.ts'
import { objectsCommand } from './objects.ts'
import type { GlobalOptions } from './open-operations.ts'
import { produceCommand } from './produce.ts'
import { rehearseCommand } from './rehearse.ts'
import { replayCommand } from './replay.ts'
import { secretsCommand } from './secrets.ts'
import { stateCommand } from './state.ts'
import { statusCommand } from './status.ts'
import { withPauseCommands } from './subscription-pause.ts'
import { withTryCommand } from './subscription-try.ts'
import { subscriptionsCommand } from './subscriptions.ts'
import { tiersCommand } from './tiers.ts'
import { tokensCommand } from './tokens.ts'
import { topCommand } from './top.ts'
import { topicsCommand } from './topics.ts'
import { upCommand } from './up.ts'
import { version, versionCommand } from './version.ts'

/** All of `hooktide`. Parsing throws commander's errors and ours: `runCli` turns them into text and exit codes. */
export function buildProgram(deps: CliDeps): Command {
  const program = new Command('hooktide')
    .description('Delivers webhooks from Kafka: signed, retried, in order. Kafka is the only thing it needs.')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'print this')
    .option('--config <file>', 'configuration file (default: $HOOKTIDE_CONFIG, else the defaults)')
    .option('--api-url <url>', 'work through the API of a service (default: $HOOKTIDE_URL, else Kafka itself)')
    .option('--token-ref <ref>', 'its token: env:NAME or file:PATH (default: $HOOKTIDE_TOKEN)')
    .option('--debug', 'print the stack of an error')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => deps.stdout.write(text),
      writeErr: (text) => deps.stderr.write(text),
      getOutHelpWidth: () => Math.min(100, deps.stdout.columns),
      getErrHelpWidth: () => Math.min(100, deps.stderr.columns),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride()
    .showSuggestionAfterError()
    .addHelpText('after', examples)
  const context = createContext(deps, () => program.opts<GlobalOptions>())
  for (const command of commands(context)) program.addCommand(inheriting(command, program))
  return program
}

function commands(context: CommandContext): Command[] {
  return [
    upCommand(context),
    demoCommand(context),
    topicsCommand({
      async open() {
        const { config } = context.load()
        const specs = await readTopicSpecs(config.topics)
        const cluster = await context.deps.connect(config)
        const { maxEventBytes } = config.router
        return { specs, maxEventBytes, admin: { ...bound(cluster.admin), close: () => cluster.close() } }
      },
      print: context.print,
      exit: (code) => context.deps.setExitCode(code),
    }),
    withTryCommand(withPauseCommands(subscriptionsCommand(context), context), context),
    endpointsCommand(context),
    secretsCommand(context),
    produceCommand(context),
    listenCommand(context),
    statusCommand(context),
    topCommand(context),
    stateCommand(context),
    eraseCommand(context),
    objectsCommand(context),
    deadCommand(context),
    deliveriesCommand(context),
    replayCommand(context),
    jobsCommand(context),
    linesCommand(context),
    tiersCommand(context),
    tokensCommand(context),
    controlCommand(context),
    rehearseCommand(context),
    doctorCommand(context),
    configCommand(context),
    versionCommand(context),
  ]
}

/** Methods of a class instance do not survive a spread. */
function bound(admin: Awaited<ReturnType<CliDeps['connect']>>['admin']) {
  return {
    cluster: () => admin.cluster(),
    describe: (...args: Parameters<typeof admin.describe>) => admin.describe(...args),
    create: (...args: Parameters<typeof admin.create>) => admin.create(...args),
    alterConfigs: (...args: Parameters<typeof admin.alterConfigs>) => admin.alterConfigs(...args),
    grow: (...args: Parameters<typeof admin.grow>) => admin.grow(...args),
    groups: (...args: Parameters<typeof admin.groups>) => admin.groups(...args),
  }
}

/** Commands made on their own have commander's defaults: they print and end the process by themselves. */
function inheriting(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent)
  for (const child of command.commands) inheriting(child, command)
  return command
}

const examples = `
Examples:
  hooktide demo                              the whole thing on real payloads, in a minute
  hooktide topics apply                      create the topics
  hooktide subscriptions add --url https://example.com/hook --secret kafka:new
  hooktide up                                run the service
  hooktide produce --type order.created --data '{"id":1}'
  hooktide status --watch
Exit codes: 0 all right, 1 it failed or is not as it should be, 2 wrong input (arguments,
configuration, a file), 70 a fault of Hooktide`
