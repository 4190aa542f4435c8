-- From here on commits tell whose the rows are that they touched, which an earlier release would take for damage.

-- Work of which some call may have had an effect, by its payment: a provider's hint names that and nothing else. Little work
-- ever gets there, so what goes well does not pay for it.
CREATE INDEX outbox_doubt_on_charge ON outbox (charge) WHERE unknown = 1 AND charge IS NOT NULL;
CREATE INDEX outbox_doubt_on_payout ON outbox (payout) WHERE unknown = 1 AND payout IS NOT NULL;
