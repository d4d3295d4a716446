"""Attributes that people look for, by class: code, and below it the names by which people know it."""

__all__ = ["NAMES"]

NAMES = """
[drumlin]
drumlin.open(address)
    connect Connection Database DB open_store Arctic lakehouse
drumlin.open(address).read(path)
    read read_table read_parquet load table scan
drumlin.open(address).write(path, data)
    write write_table save write_deltalake write_dataset
drumlin.open(address).sql(query)
    sql query execute
drumlin.open(address), which makes a store if there is none; drumlin.open('memory://') keeps it in memory
    create create_store init memory
drumlin.col(name), which compares with plain values: col('n') > 1
    lit literal field F when
drumlin.salvage(store, new)
    repair recover fix
drumlin.Error, with all others beside it: drumlin.NotFound ...
    exceptions errors
[Store]
store.tables()
    list_symbols list ls keys list_tables table_names show_tables symbols get_tables
    paths
store.stat()
    describe info stats size summary
path in store, or store.table(path).exists()
    has_symbol exists has has_table table_exists contains is_table
store.table(path).versions(), or store.history(pattern) for many tables
    versions list_versions log
store.table(path).schema() or .stat()
    get_info get_description get_schema schema
store.read(path).metadata
    read_metadata metadata
store.table(path).set_metadata(value)
    write_metadata
store.snapshots()
    list_snapshots show_snapshots
store.drop_snapshot(name)
    delete_snapshot remove_snapshot
store.read(path).head(5)
    head
store.read(path).tail(5)
    tail
store.read_many(paths)
    read_batch batch_read read_batch_and_join read_tables mget multi_get
store.write_many({path: data, ...})
    write_batch batch_write write_tables
store.append_many({path: data, ...})
    append_batch batch_append
store.drop(paths), with any number of paths and patterns
    delete delete_batch remove drop_table delete_table rm unlink drop_many drop_tables delete_symbol
store.table(path).delete(where)
    delete_data_in_range delete_rows delete_where
store.delete_versions({path: [version]})
    delete_version
store.set_retention(pattern, keep_last=1), then store.checkpoint(); or store.delete_versions({path: [0, 1]})
    prune_previous_versions prune expire_snapshots cleanup_old_versions
store.checkpoint(), which rewrites what is worth it, and store.reclaim(), which frees space
    compact optimize defragment_symbol_data compact_files vacuum gc flush compact_range
store.commit(ticket, tokens): see store.ticket()
    sort_and_finalize_staged_data finalize_staged_data
store.tree.put(path, value) for a JSON value, or store.write(path, data) for rows
    write_pickle pickle
store.replace(path, data) for a range, store.table(path).update({column: value}, where=...) or .upsert(rows)
    update
store.table(path).upsert(rows), for a table with a key; store.tree.put(path, value) for a value
    upsert insert put set insert_many merge insert_into
store.table(path).get(key), for a table with a key; store.tree.get(path) for a value
    get get_many lookup
store.table(path).create(schema, key=[...])
    create create_table create_symbol make
store.table(path)
    get_table open_table library get_library collection symbol load_table
store.sql(query)
    query execute select
store.read(path, where='close > 1')
    filter where find
store.read(path).to_pandas(), .to_polars() or .to_arrow()
    to_pandas to_polars to_arrow df pl load collect
store.read(path)
    read_table read_pandas scan_table
store.write(path, data)
    write_table save store save_table to_table write_dataframe overwrite
store.write(path, "rows.csv"), which takes the path of a file; in a shell: drumlin import STORE FILE --table PATH
    import_csv read_csv from_csv load_csv import_json import_file import_feather
store.write(path, "rows.parquet"), which takes the path of a file
    from_parquet write_parquet load_parquet import_ import_parquet
store.read(path).to_parquet(file) or .to_csv(file)
    to_parquet to_csv export export_parquet
with store.transaction() as tx: ...
    begin begin_transaction start_transaction write_transaction tx txn batch atomic
for commit in store.changes(): ..., for changes in store.table(path).follow(): ..., or store.tree.on(...) for a function
    watch follow subscribe listen changefeed on_change tail_log events stream
store.undrop(path)
    undelete recover undo
store.restore(path, as_of), or store.read(path, as_of=...) to look only
    rollback time_travel checkout restore_version
store.move(old, new)
    rename mv rename_table
store.copy(old, new), which writes no data
    clone branch cp fork copy_table
store.copy_to(other)
    backup export_to sync_to replicate
store.snapshot(name, pattern)
    tag create_snapshot create_tag take_snapshot
drumlin.open(address)
    open reopen connect
nothing: each call is durable when it returns (sync='commit')
    sync persist
len(store.read(path))
    count num_rows count_rows
store.table(path).schema().names
    columns
store.uri
    get_uri path url address root
store.verify()
    check fsck validate
store.table(path).diff(since, until)
    delta diff changes_between
store.table(path).add_columns({name: type})
    add_columns alter add_column alter_table
store.scan(pattern).group_by(...)
    group_by groupby
store.scan('trades/*', path_columns=['sym']).join_asof(store.scan('quotes/*', path_columns=['sym']), on='ts', by='sym')
    join_asof merge_asof asof_join
store.scan(pattern).to_lazy()
    lazy to_lazy lazyframe
store.scan(pattern), which is a pyarrow dataset
    dataset to_dataset to_pyarrow_dataset
store.transact(lambda tx: ...), which runs it again if others were faster
    run_transaction run_in_transaction with_transaction atomically
store.write(path, "x.parquet") brings a file in, store.read(path) reads a table
    read_parquet scan_parquet
store.read(path).to_polars()
    read_polars
a folder of the tree: store.write('library/symbol', data), store.tables('library/*')
    create_library delete_library libraries list_libraries
store.sql(query), which is DuckDB's: .df(), .pl(), .fetchall()
    cursor connection duckdb con conn read_sql
print(store.tree.list()), or store.ui()
    show display print
store.tree.put(path, value) and store.tree.get(path)
    config kv settings
tree.put(path, value, mode='create', presence=...), see tree.presence(), which one of many does; or store.transact(...)
    lock acquire leader elect election
store.tree.presence(), and tree.put(path, value, presence=...): nodes that end with this program
    presence presences lease ephemeral register announce session heartbeat keepalive keep_alive grant
[Table]
len(table.read(where=...)), or table.stat().rows
    count num_rows count_rows size nrows
table.schema().names and .types
    columns column_names dtypes fields names
table.stat() and table.schema()
    info describe get_description details summary stats
table.upsert(rows)
    put set save add upsert_many insert_many put_many bulk_upsert replace_one bulk_insert
table.get(key), or table.get_many(keys)
    lookup find find_one multi_get mget batch_get get_all get_or_none
table.delete_keys(keys), or table.delete(where)
    remove delete_many delete_key pop delete_row delete_one
table.read().head(5)
    head
table.read().tail(5)
    tail
table.read(columns=[...], where=...), then .to_pandas(), .to_polars(), .to_arrow() or .to_dicts()
    to_pandas to_polars to_arrow df pl to_df collect to_dicts to_pylist to_table load scan select where filter
    first limit rows all fetchall query to_batches to_parquet to_csv
store.checkpoint(), which rewrites what is worth it in all tables, and store.reclaim()
    optimize compact compact_files vacuum cleanup_old_versions defragment
table.versions(), or store.history(path)
    history list_versions log list_history
table.read().version
    version latest_version current_version
table.read(as_of=version)
    checkout time_travel as_of at load_version load_as_version
store.restore(path, as_of)
    restore rollback restore_to
for changes in table.follow(): ..., table.on(...) for a function, or table.diff(since) for two versions
    watch subscribe changes listen stream cdf load_cdf readChangeFeed
table.read().metadata
    metadata get_metadata
table.add_columns({name: type})
    add_column with_column with_columns alter add_field alter_columns
table.drop_columns([name])
    drop_column remove_column remove_columns
table.widen({name: type})
    cast change_type alter_type
table.add_constraints(checks={name: predicate})
    add_check add_constraint check
store.scan(path), which is a pyarrow dataset and has .to_lazy()
    to_lazy lazy to_dataset dataset to_pyarrow_dataset lazyframe
table.group_by(...)
    groupby
table.delete(where='true')
    truncate clear delete_all
table.upsert(rows), or table.merge(data, on=[...])
    insert_or_update update_or_insert merge_insert
table.stat().key and .sort
    key primary_key keys sort_order sort rows_count
store.move(old, new)
    move
store.copy(old, new)
    copy clone
store.delete_versions({path: [version]})
    delete_version delete_versions
table.create_index(name, columns)
    create_scalar_index add_index ensure_index
table.create_index(name, columns, unique=True)
    create_unique_index unique_index add_unique_constraint unique_constraint
store.view(path, over=pattern, agg={name: (column, function)})
    create_view materialized_view create_materialized_view continuous_aggregate rollup
table.catch_up()
    refresh_view refresh_materialized_view
table.set_layout(sort_by=[...])
    cluster_by set_clustering clustering liquid_clustering zorder_by z_order_by z_order zorder
table.indexes()
    list_indices list_indexes index_stats
for batch in table.read(): ...
    iterrows iter_rows itertuples iter_batches
store.set_retention(path, keep_last=...)
    set_retention retention
store.snapshot(name, path)
    snapshot tag
a table for each part, store.write(f'{path}/{part}', rows), read by store.scan(f'{path}/*', path_columns=[name])
    partition_by partitions
table.path
    name
table.drop()
    drop_table
table.read(limit=5), or store.sql('select * from ... using sample 5') at random
    sample
table.rename_columns({old: new}) for columns, store.move(old, new) for the table
    rename rename_column
key in table, or table.get(key) is not None
    contains has
with store.transaction() as tx: tx.table(path).get(key), then .insert(row)
    get_or_create setdefault
table.increment({'n': 1}, key), or table.update({'n': 'n + 1'}, where='id = 1')
    patch incr inc add_to count_up
table.compare_and_set(key, {'n': 1}, {'n': 2})
    compare_and_swap cas update_if
table.read(where='close > 1')
    filter_by
table.group_by().agg(n=('close', 'max'))
    max min sum mean avg
table.group_by('sym').agg(n='count')
    distinct unique value_counts drop_duplicates nunique
table.read().to_dicts(), or for batch in table.read(): ...
    items values
table.stat().key, and table.schema().names
    index
store.sql('select ... from path')
    sql
table.stat(), or store.ui() for the layout on storage
    files fragments
table.read().to_pandas(), whose frame has it
    plot hist boxplot
[Result]
result.to_pandas()
    df fetchdf pandas toPandas data frame
result.to_polars()
    pl polars collect
result.to_arrow()
    arrow to_table fetch_arrow_table to_pyarrow table read_all
result.to_dicts()
    to_pylist to_dict rows fetchall to_list tolist all as_py to_records iter_rows iterrows itertuples records
result.head(1).to_dicts(), or table.get(key) for a row by key
    first one fetchone one_or_none scalar item get
len(result)
    count count_rows shape size height nrows
result.schema.names and .types
    columns column_names names dtypes types width
result.where('close > 1')
    filter query loc
result.head(n), or store.read(path, rows=slice(10, 20))
    limit take iloc slice fetchmany
result.tail(n)
    last
store.scan(path).join_asof(store.scan(other), on='ts')
    join_asof merge_asof
result.group_by('sym').agg(n='count')
    groupby
result.group_by().agg(mean=('price', 'mean'))
    agg aggregate mean sum min max
result.to_parquet(file)
    write_parquet save_parquet
result.to_csv(file)
    write_csv
store.scan(pattern), a data set: it has .to_lazy(), .explain(), .splits(), .versions, and is a pyarrow dataset
    to_lazy lazy to_dataset dataset explain splits paths versions path_columns scanner to_pyarrow_dataset
result.to_pandas(), whose frame has it
    plot hist describe values index iat at corr rolling merge join pivot set_index reset_index sort_values apply
    tz_localize pct_change cumsum to_json to_excel to_feather sample to_markdown to_html to_string pipe
result.to_polars(), whose frame has it
    with_columns with_column sort unique explode write_ipc write_json write_ndjson write_excel write_delta
result.to_polars().sort(...), or store.sql('select ... order by ...')
    order_by sort_by
print(result), which shows the first rows
    show display print
store.read(path, as_of=...)
    as_of
for batch in result: ..., or result.to_batches()
    iter_batches batches
len(result) == 0
    empty is_empty
result.schema, len(result)
    info glimpse
[Dataset]
dataset.to_pandas()
    df fetchdf toPandas
dataset.to_polars()
    pl polars
dataset.to_lazy()
    lazy lazyframe scan
dataset.to_arrow()
    collect arrow read read_all fetchall
dataset.count_rows()
    count
dataset.schema.names
    columns column_names dtypes
dataset.group_by('sym').agg(n='count')
    groupby agg
dataset.join_asof(other, on='ts', by='sym')
    merge_asof asof_join asof
dataset.join_window(other, on='ts', by='sym', before='5s').agg(n='count')
    join_rolling rolling window_join
dataset.to_lazy().with_columns(...)
    with_columns
dataset.paths
    tables
dataset.to_parquet(file)
    write_parquet
dataset.to_csv(file)
    write_csv
dataset.to_lazy().sort(...), or store.sql('select ... order by ...')
    order_by sort
dataset.limit(5), or store.sql('select * from ... using sample 5') at random
    sample
[Expr]
col('ts').year(), .month(), .hour(), .date_trunc('month') and so on, of the column itself
    dt date time weekday truncate floor_dt
col('s').lower(), .length(), .starts_with('a'), .contains('b') and so on, of the column itself
    str string text
col('n').isin([1, 2])
    is_in in_ any_of one_of
col('n').coalesce(0)
    fill_null fillna ifnull if_null nvl fill_nan
col('n').is_null()
    isnull isna is_na is_none isNull is_missing
col('n').is_not_null()
    notnull notna is_valid isNotNull
col('n').cast('int64')
    astype to_type as_type
col('s').like('a%')
    ilike rlike regex match matches regexp glob
col('s').lower()
    to_lowercase lowercase lcase casefold
col('s').upper()
    to_uppercase uppercase ucase
col('s').trim()
    strip strip_chars
col('s').starts_with('a')
    startswith startsWith prefix
col('s').ends_with('a')
    endswith endsWith suffix
col('s').substring(1, 3)
    substr slice left head str_slice
col('s').length()
    len len_chars char_length size
col('ts').day_of_week()
    dayofweek dow
col('ts').day_of_year()
    dayofyear ordinal_day doy
~expression
    not_ invert negate
a & b, a | b
    and_ or_
(a < x) & (x < b), or x.between(a, b)
    is_between within
store.read(path).group_by(...).agg({'n': 'mean'})
    mean sum min max count std median first last n_unique alias over
col('n').abs()
    abs()
col('n').round(2)
    round()
col('n') * col('n')
    ** pow power
(col('n') / 2).floor()
    // floordiv
store.read(path).to_pandas()['n'].map(function)
    apply map map_elements
col('x') == float('nan')
    is_nan isnan
[Merge]
merge.when_matched(update=True)
    when_matched_update_all when_matched_update whenMatchedUpdateAll whenMatchedUpdate
merge.when_matched(delete=True)
    when_matched_delete whenMatchedDelete
merge.when_not_matched(insert=True)
    when_not_matched_insert_all when_not_matched_insert whenNotMatchedInsertAll whenNotMatchedInsert
merge.when_not_matched_by_source(delete=True)
    when_not_matched_by_source_delete whenNotMatchedBySourceDelete
merge.execute()
    run commit apply do
[Lookup]
list(lookup), with None for a key without a row
    to_dicts to_list tolist items values to_pylist
[key for key, found in zip(keys, lookup.found) if not found]
    missing not_found
[Groups]
groups.agg({'price': 'mean'})
    mean sum min max first last median std var any all quantile
groups.agg(n='count')
    count size len
groups.agg(open=('px', 'first'), high=('px', 'max'), low=('px', 'min'), close=('px', 'last'))
    ohlc
groups.agg(...)
    aggregate
groups.agg(...), then a frame: .to_pandas()
    apply transform filter
[Tree]
tree.put(path, value)
    set write insert upsert put_value add
tree.presence(), and tree.put(path, value, presence=...): nodes that end with this program
    lease ephemeral register announce session heartbeat keepalive keep_alive create_ephemeral grant
tree.put(path, value, ttl=...)
    expire setex put_ttl set_ttl
store.transact(lambda tx: tx.tree.put(path, f(tx.tree.get(path))))
    modify compute transform patch merge append increment incr setdefault
tree.delete(path)
    remove rm drop pop unlink
tree.list(pattern), or tree.get_many(pattern) for values
    ls keys children get_children items list_nodes get_prefix range
tree.exists(path)
    has contains has_node
tree.on(...) for a function, or for commit in store.changes(): ...
    watch subscribe listen register_trigger add_watch trigger
tree.compare_and_swap(path, expected, value)
    cas compare_and_set put_if
tree.put(path, value, keep_while=...), or store.set_retention; nothing expires by time alone
    lease grant ttl expire
nothing: tree.put(path, value) makes what is above it
    mkdir ensure_path makedirs
tree.node(path)
    stat info
store.move(old, new)
    rename move mv
store.copy(old, new)
    copy cp
tree.get_many(pattern)
    to_dict as_dict values dump
[Transaction]
tx.abort()
    rollback cancel
with store.transaction() as tx: ...
    begin start
tx.table(path) for rows, tx.tree for values
    put get set delete upsert insert update
tx.tables()
    list_symbols list ls keys list_tables
"""
