import type { ApiClient } from './api-client.ts'
import type { JobOperations } from './job-contract.ts'
import type { JobJson } from './job-json.ts'

/** Jobs through the API of a service. */
export function remoteJobs(api: ApiClient, me: string): JobOperations {
  const at = (id: string) => `/jobs/${encodeURIComponent(id)}`
  const signed = <T extends { readonly by?: string | undefined }>(input: T) => ({ ...input, by: input.by ?? me })
  return {
    replay: (input) => api.post('/replays', signed(input)),
    preview: ({ by: _by, reason: _reason, ...input }) => api.post('/replays/preview', input),
    redrive: (input) => api.post('/redrive-jobs', signed(input)),
    list: (filter) => api.get('/jobs', filter),
    show: (id) => api.get(at(id)),
    async cancel(id, { by, reason }) {
      const { value } = await api.ask<JobJson>('DELETE', at(id), { query: { by: by ?? me, reason } })
      return value
    },
  }
}
