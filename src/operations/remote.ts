import { HooktideError } from '../core/error.ts'
import { type ApiAccess, ApiClient } from './api-client.ts'
import type {
  DeadPage,
  DeliveryOperations,
  EventOperations,
  LineChoiceInput,
  LineOperations,
  Operations,
  RedriveInput,
  RedriveReport,
} from './contract.ts'
import type { OrderInput } from './order-input.ts'
import { remoteEvents } from './remote-events.ts'
import { remoteJobs } from './remote-jobs.ts'
import { remoteSubscriptions } from './remote-subscriptions.ts'
import type { Status } from './status-read.ts'

export interface RemoteParts extends ApiAccess {
  /** Who asks; the API notes it beside the token's name. */
  readonly by: string
  readonly signal: AbortSignal
  /** What instances say of what is in flight is asked from here, not by the API. */
  inFlight(metricsUrls: readonly string[]): Promise<Pick<Status, 'inFlight' | 'unreachable'>>
}

/** The operations through the API of a service. */
export function remoteOperations(parts: RemoteParts): Operations {
  const api = new ApiClient(parts)
  const signed = ({ by, reason, forMs }: OrderInput) => ({ by: by ?? parts.by, reason, forMs })
  const redrive = ({ ids, subscription, reason, since, cursor, perSecond, dryRun }: RedriveInput) => {
    // Whether everything is meant was asked where the command was given.
    const all = ids.length === 0
    return redriven(api, { ids, subscription, reason, since, cursor, perSecond, dryRun, all }, parts.signal)
  }
  return {
    subscriptions: remoteSubscriptions(api),
    deliveries: remoteDeliveries(api, signed),
    dead: {
      list: ({ subscription, tenant, reason, lastError, since, until, cursor, limit }) =>
        deadPages(api, { subscription, tenant, reason, lastError, since, until, cursor, limit }, parts.signal),
      show: (id, subscription) => api.get(`/dead/${encodeURIComponent(id)}`, { subscription }),
      redrive,
    },
    lines: remoteLines(api, signed),
    tiers: {
      list: () => api.get('/tiers'),
      order: (tier, { order, ...what }, input) =>
        api.post(`/tiers/${encodeURIComponent(tier)}/${order}`, { ...what, ...signed(input) }),
    },
    orders: {
      list: ({ kind, all }) => api.get('/orders', { kind, all }),
      clear: (targets, { ended }) => api.post('/orders/clear', { targets, ended }),
    },
    events: remoteEvents(api) satisfies EventOperations,
    jobs: remoteJobs(api, parts.by),
    async status(metricsUrls) {
      const status = await api.get<Status>('/status')
      return metricsUrls.length === 0 ? status : { ...status, ...(await parts.inFlight(metricsUrls)) }
    },
    topics: () => api.get('/topics'),
    state: () => api.get('/state'),
  }
}

function remoteDeliveries(api: ApiClient, signed: (input: OrderInput) => object): DeliveryOperations {
  const at = (id: string) => `/deliveries/${encodeURIComponent(id)}`
  return {
    story: (id, subscription) => api.get(`${at(id)}/story`, { subscription }),
    cancel(id, { subscription, dead, unseen, ...input }) {
      return api.post(`${at(id)}/cancel`, { subscription, dead, unseen, ...signed(input) })
    },
    search({ tenant, deliveryId, eventId, subscriptionId, status, type, fromMs, toMs }, { limit, cursor }) {
      const query = { tenant, deliveryId, eventId, subscription: subscriptionId, status, type, from: fromMs, to: toMs }
      return api.get('/deliveries', { ...query, limit, cursor: cursor ?? undefined })
    },
    show: (id) => api.get(at(id)),
    retry: (id) => api.post(`${at(id)}/retry`),
  }
}

function remoteLines(api: ApiClient, signed: (input: OrderInput) => object): LineOperations {
  return {
    list: ({ subscription, state, limit }) => api.get('/lines', { subscription, state, limit }),
    show: (choice, limit) => api.get('/line', { ...which(choice), limit }),
    release: (choice, input) => api.post('/line/release', { ...which(choice), ...signed(input) }),
    skip: (choice, input) => api.post('/line/skip', { ...which(choice), dead: input.dead, ...signed(input) }),
    cancel(choice, input) {
      const { dead, confirmed } = input
      return api.post('/line/cancel', { ...which(choice), dead, confirmed, ...signed(input) })
    },
  }
}

/** Callers pass more than is asked for; the API refuses what it does not know. */
function which({ line, subscription, key }: LineChoiceInput) {
  return { line, subscription, key }
}

/** A page may be short because the scan took too long: the next ones are asked for until it is full. */
async function deadPages(
  api: ApiClient,
  filter: Record<string, string | number | undefined> & { readonly limit: number },
  signal: AbortSignal,
): Promise<DeadPage> {
  const dead: DeadPage['dead'][number][] = []
  let cursor = filter.cursor
  for (;;) {
    // The API gives at most so many at once.
    const limit = Math.min(1000, filter.limit - dead.length)
    const page = await api.get<DeadPage>('/dead', { ...filter, cursor, limit })
    dead.push(...page.dead)
    if (page.cursor === null || dead.length >= filter.limit || signal.aborted) return { dead, cursor: page.cursor }
    cursor = page.cursor
  }
}

/** The API redrives for some seconds a call; this goes on until all is done. */
async function redriven(
  api: ApiClient,
  input: RedriveInput & { readonly all: boolean },
  signal: AbortSignal,
): Promise<RedriveReport> {
  let report = await api.post<RedriveReport>('/redrives', input)
  while (report.cursor !== null && !signal.aborted) {
    const { cursor } = report
    let part: RedriveReport
    try {
      part = await api.post<RedriveReport>('/redrives', { ...input, cursor })
    } catch (error) {
      if (!(error instanceof HooktideError)) throw error
      const remedy = `Run it again with the same filters and --cursor ${cursor}.`
      throw new HooktideError(error.code, `stopped after ${report.redriven}: ${error.message}`, {
        cause: error,
        remedy,
      })
    }
    report = {
      ...part,
      job: report.job,
      redriven: report.redriven + part.redriven,
      repeated: report.repeated + part.repeated,
      unreadable: report.unreadable + part.unreadable,
      orphaned: report.orphaned + part.orphaned,
      notFound: part.notFound.filter((id) => report.notFound.includes(id)),
    }
  }
  return report
}
