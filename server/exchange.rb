# What the lab's server does beside sending its file, where a scenario's
# workload needs it. It answers a POST of any size with the part of the file
# that Range names, and keeps what a PUT brings, the whole or the part that
# Content-Range names (RFC 9110, 14.4 and 14.5).
#
# linklab puts DIRECTORY, where the file is, and UPLOADS before it, and the
# whole into H2O's configuration. H2O hands over a body once all of it is there.
class Exchange
  def call(env)
    name = env["PATH_INFO"].split("/").last.to_s
    return refusal(404, "no file can be called so") if name == "" || name[0] == "."
    case env["REQUEST_METHOD"]
    when "POST" then answer(name, bounds(env["HTTP_RANGE"], "bytes="))
    when "PUT" then keep(name, env)
    else [399, {}, []] # For the next handler.
    end
  end

  def answer(name, part)
    path = "#{DIRECTORY}/#{name}"
    return refusal(404, "no such file") unless File.exist?(path)
    File.open(path, "rb") do |file|
      file.seek(0, IO::SEEK_END)
      size = file.pos
      return refusal(416, "needed: Range with a part of the file") unless part && part[0] <= part[1] && part[1] < size
      file.seek(part[0])
      body = file.read(part[1] - part[0] + 1)
      headers = {"content-range" => "bytes #{part[0]}-#{part[1]}/#{size}", "content-length" => body.bytesize.to_s}
      [206, headers, [body]]
    end
  end

  def keep(name, env)
    said = env["HTTP_CONTENT_RANGE"]
    part = bounds(said, "bytes ")
    body = env["rack.input"] ? env["rack.input"].read.to_s : ""
    if said && !(part && part[1] - part[0] + 1 == body.bytesize)
      return refusal(400, "Content-Range does not say what part this is")
    end
    path = "#{UPLOADS}/#{name}"
    File.open(path, part && File.exist?(path) ? "r+b" : "w+b") do |file|
      file.seek(part[0]) if part
      file.write(body)
    end
    [201, {"content-length" => "0"}, []]
  end

  # First and last byte of "bytes=FIRST-LAST" or "bytes FIRST-LAST/SIZE".
  def bounds(text, unit)
    return nil unless text && text[0, unit.length] == unit
    ends = text[unit.length..-1].split("/").first.to_s.split("-")
    ends.length == 2 && ends.all? { |n| n != "" } ? ends.map { |n| n.to_i } : nil
  end

  def refusal(status, why)
    [status, {"content-type" => "text/plain"}, ["#{why}\n"]]
  end
end

Exchange.new
